"""What several rules do in a round: the order of rows, the sums of the trace, the dual's step, the leader's place."""

from __future__ import annotations

import math

from longterm.linear_model import _layout as at
from longterm.linear_model._compile import helper
from longterm.linear_model._lanes import Lanes, lanes


@helper
def unpack(numbers):
    """The state's numbers, in the order of `_layout`, to be held in registers."""
    first = (numbers[0], numbers[1], numbers[2], numbers[3], numbers[4], numbers[5], numbers[6])
    second = (numbers[7], numbers[8], numbers[9], numbers[10], numbers[11], numbers[12], numbers[13], numbers[14])
    return (*first, *second)


@helper
def pack(numbers, values):
    """Put them back."""
    for position in range(len(values)):
        numbers[position] = values[position]


@helper
def first_to_record(record, t):
    """Where in the increasing rounds of `record` a game that stands before round t goes on."""
    found = 0
    while found < len(record) and record[found] < t:
        found += 1
    return found


@helper
def nonzeros(v):
    """How many numbers of v are not 0."""
    count = 0
    for value in v:
        count += value != 0.0
    return count


@helper
def constraint_value(p, scale, norm_1, norm_2):
    """g(x_t) of x_t = scale · v, from the norms of v."""
    return scale * (p[at.L1] * norm_1 + 0.5 * p[at.L2] * scale * norm_2) - p[at.BUDGET]


@helper
def penalty_weight(p, t, largest):
    """θ_t = theta_0/t^β; found online theta_0/(M_t t^β), and 0 while M_t is."""
    theta = p[at.THETA_0] / t ** p[at.BETA]
    if p[at.STEP] > 0.0:
        return theta
    return theta / largest if largest > 0.0 else 0.0


@helper
def ascend(multiplier, g, theta, t):
    """λ_{t+1} = [λ_t + μ_t (g(x_t) − θ_t λ_t)]₊ with μ_t = 1/(θ_t (t + 1)); as it was where there is no θ_t yet."""
    if theta == 0.0:
        return multiplier
    return max(multiplier + (g - theta * multiplier) / (theta * (t + 1.0)), 0.0)


@helper
def add_theta(bound_sum, theta, t):
    """S_θ + δ_μ after one more round: θ_t, and 1/μ_t = (t + 1) θ_t in the first round that has one."""
    return bound_sum + (theta if bound_sum > 0.0 else theta * (t + 1.0))


@helper
def leader_curvature(p, t, squares):
    """a_{t+1} = √(t + 1)/step; found online √V_t/R, or 1 while every gradient was 0 (x is 0 whatever it is)."""
    if p[at.STEP] > 0.0:
        return math.sqrt(t + 1.0) / p[at.STEP]
    return math.sqrt(squares) / p[at.RADIUS] if squares > 0.0 else 1.0


@helper
def leader_intercept(p, curvature, slope_sum, slope_squares):
    """b_{t+1} = clip(−z_b/a_{t+1}, ±r). Found online, b is a learner of its own, with the curvature √(Σ slope²)/r."""
    bound = p[at.INTERCEPT_BOUND]
    if p[at.STEP] == 0.0:
        if slope_squares == 0.0:
            return 0.0
        curvature = math.sqrt(slope_squares) / bound
    return clip(-slope_sum / curvature, bound)


@helper
def within_ball(scale, norm_2, radius):
    """The factor that puts scale · v into the ball, from ‖v‖²."""
    return radius / math.sqrt(norm_2) if norm_2 * scale * scale > radius * radius else scale


@helper
def clip(value, bound):
    """The nearest number in [−bound, bound]."""
    return min(max(value, -bound), bound)


@lanes(writes=1, sums=2)
def shrink(w: Lanes, z: Lanes, threshold: Lanes) -> tuple[Lanes, ...]:
    """The next w = soft(z, threshold); ‖w‖₁ and ‖w‖²."""
    w = z - z.clipped(threshold)
    return w, abs(w), w * w


@lanes(writes=2, sums=2)
def add_and_shrink(z: Lanes, w: Lanes, u: Lanes, slope: Lanes, threshold: Lanes) -> tuple[Lanes, ...]:
    """Add slope · u to z, w = soft(z, threshold); ‖w‖₁ and ‖w‖²."""
    z = z + slope * u
    w = z - z.clipped(threshold)
    return z, w, abs(w), w * w
