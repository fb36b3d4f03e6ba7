"""A live learner whose feedback comes late, in several orders."""

from collections.abc import Iterator

import numpy as np

from longterm import AOGD, LiveLearner
from longterm.problems.named.adversarial import late_reversal


def arrivals(kind: str, rounds: int, delay: int, rng: np.random.Generator) -> Iterator[list[int]]:
    """After the t-th ask, the rounds whose feedback arrives then, in order: never more than `delay` rounds late."""
    waiting: list[int] = []
    for t in range(1, rounds + 1):
        waiting.append(t)
        overdue = [s for s in waiting if s + delay <= t or t == rounds]
        if kind == "in order":
            now = overdue
        elif kind == "blocks reversed":  # the window fills up, then all comes at once, the newest first
            now = waiting[::-1] if len(waiting) == delay + 1 or t == rounds else []
        elif kind == "oldest last":  # the oldest waits as long as it may, while the others come at once
            now = [s for s in waiting[1:] if t % 2] + overdue[:1]
            now += [s for s in overdue if s not in now]
        else:
            early = [s for s in waiting if s not in overdue and rng.random() < 0.3]
            now = list(rng.permutation(overdue + early))
        waiting = [s for s in waiting if s not in now]
        yield [int(s) for s in now]


def play(problem, learner, kind, rounds, delay, rng, parameters_of):
    """Regret's ingredients over the rounds told: their parameters, Σ f_s(x_s), Σ g_s(x_s)."""
    live = LiveLearner(learner, problem, max_in_flight=delay + 1, expire_after=delay)
    tokens, told = {}, []
    given_out = {}
    for now in arrivals(kind, rounds, delay, rng):
        token = live.ask()
        tokens[token.number] = token
        given_out[token.number] = parameters_of(token.x, token.number)
        for number in now:
            if kind == "random and lossy" and rng.random() < 0.2:
                live.skip(tokens.pop(number))
            else:
                loss, constraint = given_out[number]
                live.tell(tokens.pop(number), loss_parameters=loss, constraint_parameters=constraint)
                told.append(number)
    state = live.state
    assert state.expired == state.in_flight == 0
    assert state.largest_delay <= delay
    return [given_out[s] for s in told], float(state.cumulative_loss), float(state.signed_violation)


def regret_in_blocks(delay, rounds, schedule):
    """One dimension; feedback comes in blocks, and a whole block charges for where the learner stood."""
    problem = late_reversal()

    def parameters(x, number):
        return [np.where(x >= 0, 1.0, -1.0)], []

    rng = np.random.default_rng(0)
    learner = AOGD(problem.enclosing_set, schedule)
    told, loss, _ = play(problem, learner, "blocks reversed", rounds, delay, rng, parameters)
    return loss + abs(float(sum(cost for (cost,), _ in told)[0]))
