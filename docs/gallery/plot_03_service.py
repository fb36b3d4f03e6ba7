"""
A learner in a web service: late feedback, kill −9, several workers
===================================================================

Assumes the core alone, and Matplotlib for the figure. One process answers ``/ask`` and ``/tell``, and any number of web
workers send requests to it. ``/ask`` returns a decision and a token. The worker keeps the token and sends it back with the
outcome to ``/tell``, some requests later. The state is in a database. When the process is killed, every call that was
answered is still there.
"""

import json
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

SERVICE = '''
import json
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from longterm import AOGD, LiveLearner
from longterm.errors import AlreadyToldError
from longterm.problems import two_dimensional

problem = two_dimensional()  # stay near targets in the unit disc, with x₁ ≤ ¼ in the long run
live = LiveLearner.open("service.db", AOGD.for_problem(problem), problem)


class Handler(BaseHTTPRequestHandler):
    def do_POST(self):
        given = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.path == "/ask":
            token = live.ask()
            answer = {"token": str(token), "x": token.x.tolist()}
        else:
            try:
                live.tell(given["token"], loss_parameters=[given["target"]])
            except AlreadyToldError:  # a worker that got no answer sent it again; it counts once
                pass
            answer = {"told": live.state.told, "asked": live.state.asked}
        self.send_response(200)
        self.end_headers()
        self.wfile.write(json.dumps(answer).encode())

    def log_message(self, *words):
        """Say nothing."""


server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
print(server.server_port, flush=True)
server.serve_forever()
'''
folder = Path(tempfile.mkdtemp())
(folder / "service.py").write_text(SERVICE, encoding="utf-8")


def start():
    """Start the service. Its database is in the folder."""
    process = subprocess.Popen([sys.executable, "service.py"], cwd=folder, stdout=subprocess.PIPE, text=True)
    with process.stdout as printed:
        return process, int(printed.readline())


# %%
# Each worker asks, learns the outcome five requests later, and repeats a call that was not answered.

service, port = start()


def post(path, **given):
    """Send a request again and again until it is answered."""
    while True:
        try:
            address = f"http://127.0.0.1:{port}{path}"
            with urllib.request.urlopen(urllib.request.Request(address, json.dumps(given).encode())) as answer:
                return json.load(answer)
        except (OSError, ValueError) as error:  # the service is down, or died while it answered
            if isinstance(error, urllib.error.HTTPError):
                raise
            time.sleep(0.05)


def worker(seed):
    """Make sixty requests. The outcomes of the last five are never sent."""
    rng, open_rounds, decided = np.random.default_rng(seed), [], []
    for _ in range(60):
        asked = post("/ask")
        decided.append(asked["x"])
        open_rounds.append(asked["token"])
        if len(open_rounds) > 5:
            target = rng.uniform(0.0, 0.7, 2).tolist()
            post("/tell", token=open_rounds.pop(int(rng.integers(5))), target=target)
    return decided


with ThreadPoolExecutor(3) as workers:
    work = [workers.submit(worker, seed) for seed in range(3)]
    time.sleep(0.3)
    service.kill()  # kill −9, while the workers send
    service.wait()
    service, port = start()
    decisions = [one.result() for one in work]
state = post("/tell", token=post("/ask")["token"], target=[0.3, 0.3])
service.kill()
service.wait()
assert state["told"] == 3 * 55 + 1
print(f"{state['told'] - 1} of the workers' 180 requests have an outcome; no answered call is lost")

# %%
figure, axis = plt.subplots(figsize=(6, 2.8), layout="constrained")
for k, decided in enumerate(decisions):
    axis.plot([x[0] for x in decided], label=f"worker {k + 1}")
axis.axhline(0.25, color="grey", linewidth=0.8, label="x₁ ≤ ¼")
axis.set(xlabel="request", ylabel="x₁, as decided")
axis.legend()

# %%
# Several processes may open the same database, for example workers of gunicorn. They share one learner. Next:
# :doc:`/guides/late_feedback`.
