"""Fleets divided among devices are those on one device, bit for bit."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import longterm
import pages

pytest.importorskip("jax")

SCRIPT = r"""
import sys

import jax
import numpy as np
import pytest
from jax import numpy as jnp
from pages import block_of_page
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from longterm import AOGD, Feedback, Fleet
from longterm.errors import InputError
from longterm.problems.sets import Box
from longterm.theory.schedules import ConvexSchedule

D, SIZE, FOLDER = 5, 20, sys.argv[1]
devices = np.array(jax.devices())
assert len(devices) == 4
sharding = NamedSharding(Mesh(devices, ("learners",)), PartitionSpec("learners"))
square = NamedSharding(Mesh(devices.reshape(2, 2), ("a", "b")), PartitionSpec(("a", "b")))
half = NamedSharding(Mesh(devices.reshape(2, 2), ("a", "b")), PartitionSpec("b"))


def told(rng, rows, kind):
    gradient, normal = rng.uniform(-0.4, 0.4, (2, rows, D))
    feedback = Feedback(gradient, rng.uniform(-0.5, 0.5, rows), normal)
    with jax.enable_x64(True):
        if kind == "device":
            return Feedback(*(jnp.asarray(array) for array in feedback[:3]))
        if kind == "committed":
            return Feedback(*(jax.device_put(array, devices[2]) for array in feedback[:3]))
    return feedback


def fields(fleet):
    return {**fleet.state._asdict(), "ask": fleet.ask(), "signed": fleet.signed_violation, "hard": fleet.hard_violation}


def require_equal(one, other):
    for name, value in fields(one).items():
        np.testing.assert_array_equal(value, fields(other)[name], err_msg=name, strict=True)


def require_divided(fleet, parts=4):
    for leaf in jax.tree.leaves((fleet._device._state, fleet._device._totals)):
        assert {shard.data.shape[0] for shard in leaf.addressable_shards} == {SIZE // parts}, leaf.sharding


rule = AOGD(Box(-np.ones(D), np.ones(D)), ConvexSchedule(2.0, 1.0, beta=np.linspace(0.4, 0.8, SIZE)))
plain, fleet = Fleet(rule, SIZE, engine="jax"), Fleet(rule, SIZE, engine="jax", sharding=square)
require_divided(fleet)
require_equal(fleet, plain)
rng = np.random.default_rng(0)
for t in range(12):
    rows = [None, rng.permutation(SIZE)[:8], np.arange(SIZE) % 5 < 2][t % 3]
    kind = ["committed", "device", "host", "host"][t % 4]
    state = rng.bit_generator.state
    plain.tell(told(rng, SIZE if rows is None else 8, "host" if kind == "host" else "device"), rows)
    rng.bit_generator.state = state
    fleet.tell(told(rng, SIZE if rows is None else 8, kind), rows, wait=bool(t % 2))
    fleet.check()
    require_divided(fleet)
    require_equal(fleet, plain)
chosen = rng.permutation(SIZE)[:8]
np.testing.assert_array_equal(fleet.ask(chosen), plain.ask(chosen))
np.testing.assert_array_equal(np.asarray(fleet.ask(chosen, on_device=True)), plain.ask(chosen))
# A refused row changes no row on any device.
for kind in ("host", "device"):
    bad = told(rng, SIZE, kind)
    gradient = np.array(bad.loss_gradient)
    gradient[SIZE - 1, 0] = np.nan
    with jax.enable_x64(True):
        bad = bad._replace(loss_gradient=gradient if kind == "host" else jnp.asarray(gradient))
    with pytest.raises(InputError, match=f"learner {SIZE - 1}"):
        fleet.tell(bad)
    require_equal(fleet, plain)
# Files do not depend on the devices.
fleet.save(f"{FOLDER}/sharded")
plain.save(f"{FOLDER}/plain")
assert open(f"{FOLDER}/sharded", "rb").read() == open(f"{FOLDER}/plain", "rb").read()
again = Fleet.load(f"{FOLDER}/plain", rule, engine="jax", sharding=half)
other = Fleet.load(f"{FOLDER}/sharded", rule, engine="jax")
require_divided(again, 2)
state = rng.bit_generator.state
for one in (again, other, plain):
    rng.bit_generator.state = state
    one.tell(told(rng, SIZE, "device"))
require_divided(again, 2)
require_equal(again, plain)
require_equal(other, plain)
here = Fleet.load(f"{FOLDER}/sharded", rule)  # NumPy
np.testing.assert_array_equal(here.rounds + 1, plain.rounds)

with pytest.raises(InputError, match="sharding: 22 learners cannot be divided evenly among 4 .* such as 24"):
    Fleet(AOGD(Box(-np.ones(D), np.ones(D)), ConvexSchedule(2.0, 1.0)), 22, engine="jax", sharding=sharding)
three = NamedSharding(Mesh(devices[:3], ("learners",)), PartitionSpec("learners"))
with pytest.raises(InputError, match="sharding: 20 learners cannot be divided evenly among 3"):
    Fleet.load(f"{FOLDER}/plain", rule, engine="jax", sharding=three)
with pytest.raises(InputError, match="sharding: .*engine='jax'"):
    Fleet(rule, SIZE, sharding=sharding)
for bad in ("learners", devices[0], jax.sharding.SingleDeviceSharding(devices[0]),
            NamedSharding(Mesh(devices.reshape(2, 2), ("a", "b")), PartitionSpec("a", "b"))):
    with pytest.raises(InputError, match="sharding: .* does not divide"):
        Fleet(rule, SIZE, engine="jax", sharding=bad)

# The code of the guide.
learner = rule
page = block_of_page("PartitionSpec").replace("1_000_000", "SIZE").replace('"fleet"', 'f"{FOLDER}/page"')
exec(page)
require_divided(fleet)
print("equal")
"""


@pytest.mark.slow
def test_four_devices_hold_the_fleet_of_one(tmp_path):
    flags = f"{os.environ.get('XLA_FLAGS', '')} --xla_force_host_platform_device_count=4".strip()
    path = os.pathsep.join([str(Path(longterm.__file__).parents[1]), str(Path(pages.__file__).parent)])
    environment = os.environ | {"XLA_FLAGS": flags, "JAX_PLATFORMS": "cpu", "PYTHONPATH": path}
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, tmp_path], capture_output=True, text=True, env=environment, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.strip() == "equal"
