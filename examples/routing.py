"""Route prompts to language models under a budget: every method on one table, one command.

python examples/routing.py --help
"""

from __future__ import annotations

import argparse
import csv
import json
import lzma
import os
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from longterm.errors import InputError
from longterm.lab.experiments.jobs import single_threaded
from longterm.money import (
    EXP3IX,
    Budget,
    Chooser,
    EntropicDual,
    FixedMixture,
    InverseGapWeighting,
    LinearUCB,
    OutcomeTable,
    PrimalDual,
    RidgeRegressor,
    ThompsonSampling,
    WordHash,
    best_choices,
    replay_outcomes,
)

EXPLANATION = """\
A table has a prompt and a score in [0, 1] for each model. Requests come in some order; one model answers each; only
its score is learned. A model costs its price per million tokens times the tokens of the prompt (characters / 4) and
of the answer. The budget lies between the cheapest model for all and the best model for all: 0 is the one, 1 the
other. It is counted as spend above the cheapest model, so it can be kept to the last cent in any order.

Methods. All have the same guard and features and see only the score of the model that answered, except where stated.
All but "gap" and the last six have the same belief and price:
  thompson    joint linear Thompson sampling, factor 0.4, exploration with probability 1/√t, entropic price, replanning
  late        the same, each reward 0 to 50 requests late
  labelled    the same, with the scores of all models for the first 1,000 requests
  full        the same, with the scores of all models always: an upper limit for these features
  ucb         optimism instead of sampling
  gap200      inverse gap weighting over that belief, γ = 200
  greedy      no exploration
  gap         inverse gap weighting as it comes: a ridge regression for each model, 20 times the theorem's γ; that price
  exp3        EXP3-IX: no features
  threshold   any model for 500 requests, then a ridge regression of what was seen and a threshold on gain per cost,
              tuned to spend the remaining budget evenly on requests like those: once
  retuned     the same, regression and threshold made again of all seen so far every 500 requests
  mix         the cheapest and the best model at random, in the proportion that the budget allows
  fixed       the best fixed mixture of all models *of hindsight*, at random
  filter      the best model until the money is gone, then the cheapest: what a router without prices does
Differences from the first method are paired: the same orders, the standard error of the difference.
Ceilings: row (who knows the score of every answer: mostly noise), class (who knows the mean of every subject).
"""
WHERE = """\
Tables are looked for in the folder that LONGTERM_DATA names, or in ../shared/data beside a checkout; --table names
any other CSV file (plain or .xz): a column "prompt" or "question", perhaps "subject", and one column of scores for
each model.

examples:
  python examples/routing.py mmlu nine --out results
  python examples/routing.py --invented 1
  python examples/routing.py mmlu --order subject --methods thompson mix
  python examples/routing.py --table my.csv --prices my-prices.json --budgets 0.2
"""
TABLES = {"mmlu": "routellm-mmlu.csv.xz", "nine": "llmrouter-train.csv.xz"}
PRICES = {"mistralai/Mixtral-8x7B-Instruct-v0.1": 0.24, "gpt-4-1106-preview": 24.7}
"""Dollars per million tokens; the nine have their own file."""
METHODS = (
    *("thompson", "late", "labelled", "full", "ucb", "gap200", "greedy"),
    *("gap", "exp3", "threshold", "retuned", "mix", "fixed", "filter"),
)
LABELLED, LATE = 1000, 50
EXPLORE, RETUNE = 500, 500
CONSTANT, OWN, NOISE = 5.0, 0.1, 0.45
"""The belief: models differ in level by about CONSTANT · OWN = 0.5, and in what suits them by 0.1 a feature."""


@dataclass(frozen=True)
class Prompts:
    """A table of scores with its texts' features."""

    name: str
    models: list[str]
    table: OutcomeTable
    subjects: NDArray[Any]
    seconds: NDArray[Any]
    """The time that the features of each text took."""

    @property
    def excess(self) -> NDArray[Any]:
        """The cost of each model above the cheapest."""
        return np.asarray(self.table.costs - self.table.costs.min(axis=1, keepdims=True))

    @property
    def best(self) -> int:
        return int(self.table.rewards.mean(axis=0).argmax())

    def budget(self, share: float) -> Budget:
        excess = self.excess
        return Budget(share * float(excess[:, self.best].sum()), float(excess.max()), above_cheapest=True)

    def order(self, kind: str, seed: int) -> NDArray[Any]:
        """A permutation of the rows: any, or subject after subject (the first as in the file)."""
        rng = np.random.default_rng(seed)
        if kind == "random":
            return rng.permutation(len(self.table))
        names = np.unique(self.subjects)
        if seed:
            names = rng.permutation(names)
        return np.concatenate([np.flatnonzero(self.subjects == name) for name in names])


def load(path: Path, prices: dict[str, float], answer_tokens: float, size: int) -> Prompts:
    """Read a table."""
    opened = lzma.open if path.suffix == ".xz" else open
    with opened(path, "rt", encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    if not rows:
        raise InputError("table", f"{path} has no rows", "Give a CSV file with a header")
    text = next((name for name in ("prompt", "question") if name in rows[0]), None)
    models = [name for name in rows[0] if name not in ("prompt", "question", "subject")]
    missing = [model for model in models if model not in prices]
    if text is None or missing:
        raise InputError("table", f"{path} has no prompt, or no price for {missing}", "See --help")
    features = WordHash(size, constant=CONSTANT)
    contexts, seconds = [], []
    for row in rows:
        start = time.thread_time()
        contexts.append(features(row[text]))
        seconds.append(time.thread_time() - start)
    tokens = np.array([len(row[text]) / 4 + answer_tokens for row in rows])
    costs = tokens[:, None] * np.array([prices[model] for model in models]) / 1e6
    rewards = np.array([[float(row[model]) for model in models] for row in rows])
    subjects = np.array([row.get("subject", "all") for row in rows])
    name = path.name.split(".")[0]
    return Prompts(name, models, OutcomeTable(np.array(contexts), rewards, costs), subjects, np.array(seconds))


def invented(seed: int, rows: int, size: int) -> Prompts:
    """Four models and six topics, each known by its words; who is good at what is drawn, dear models are better."""
    rng = np.random.default_rng(seed)
    prices, level = np.array([0.2, 1.0, 1.5, 8.0]), np.array([0.45, 0.5, 0.5, 0.7])
    right = np.clip(level + 0.2 * rng.standard_normal((6, 4)), 0.05, 0.95)
    topics = rng.integers(0, 6, rows)
    drawn = rng.integers(0, 30, (rows, 8)), rng.integers(0, 200, (rows, 8))
    features = WordHash(size, constant=CONSTANT)
    contexts, seconds = [], []
    for topic, special, common in zip(topics, *drawn, strict=True):
        words = [f"t{'abcdef'[topic]}{'x' * (k % 5)}{'y' * (k // 5)}" for k in special.tolist()]
        words += [f"w{'o' * (k % 15)}{'u' * (k // 15)}" for k in common.tolist()]
        start = time.thread_time()
        contexts.append(features(" ".join(words)))
        seconds.append(time.thread_time() - start)
    costs = (50 + 100 * rng.random(rows))[:, None] * prices / 1e6
    rewards = (rng.random((rows, 4)) < right[topics]).astype(np.float64)
    table = OutcomeTable(np.array(contexts), rewards, costs)
    return Prompts("invented", ["tiny", "small", "other", "large"], table, topics, np.array(seconds))


def chooser(prompts: Prompts, budget: Budget, method: str, seed: int, first: int) -> Chooser:
    """Return the chooser of a method. Only the first request's costs set the first price."""
    K, d = prompts.table.rewards.shape[1], prompts.table.contexts.shape[1]
    common: dict[str, Any] = {"shared_scale": 1.0, "prior_scale": OWN, "noise": NOISE}
    primal: Any
    if method in ("thompson", "late", "labelled", "full"):
        primal = ThompsonSampling(K, d, factor=0.4, exploration=1.0, **common)
    elif method == "greedy":
        primal = ThompsonSampling(K, d, factor=0.0, exploration=0.0, **common)
    elif method == "ucb":
        primal = LinearUCB(K, d, width=0.4, **common)
    elif method == "gap200":
        primal = InverseGapWeighting(
            K, RidgeRegressor(d, ridge=(NOISE / OWN) ** 2, shared_scale=1 / OWN), sharpness=200.0
        )
    elif method == "gap":
        primal = InverseGapWeighting(K, RidgeRegressor(d))
    elif method == "exp3":
        primal = EXP3IX(K)
    else:
        primal = FixedMixture(_shares(prompts, budget, method))
    # A first guess of what money is worth: 0.3 of a right answer for the dearest model's cost of this request.
    start = 0.3 / float(prompts.excess[first].max())
    rule = PrimalDual(primal, EntropicDual(start, step=0.02), budget, len(prompts.table), replan=True)
    return Chooser(rule, seed=seed)


def _shares(prompts: Prompts, budget: Budget, method: str) -> tuple[float, ...]:
    table, share = prompts.table, budget.limit / float(prompts.excess[:, prompts.best].sum())
    if method == "fixed":
        return tuple(best_choices(table.rewards, table.costs, budget, "mixture").shares[0].tolist())
    shares = np.zeros(table.rewards.shape[1])
    shares[int(table.costs[0].argmin())] = 1 - share
    shares[prompts.best] += share
    if method == "filter":
        shares = np.where(np.arange(len(shares)) == prompts.best, 1 - 1e-9, 1e-9 / (len(shares) - 1))
    return tuple((shares / shares.sum()).tolist())


@dataclass(frozen=True)
class Result:
    """One run."""

    method: str
    share: float
    seed: int
    quality: float
    used: float
    """Share of the budget that was spent; above 1 it would be broken."""
    prices: NDArray[Any]
    decision: NDArray[Any]
    """Seconds of processor time of each decision, features included: others on the machine do not count."""


def run(prompts: Prompts, method: str, share: float, kind: str, seed: int) -> Result:
    """Replay one order with one method."""
    order = prompts.order(kind, seed)
    table, budget = prompts.table.ordered(order), prompts.budget(share)
    if method in ("threshold", "retuned"):
        quality, spent, prices = threshold(table, budget, seed, again=method == "retuned")
        return Result(method, share, seed, quality, spent / budget.limit, prices, np.zeros(0))
    made = chooser(prompts, budget, method, seed, int(order[0]))
    act, seconds = made.act, np.zeros(len(table))

    def timed(*arguments: Any, **options: Any) -> Any:
        start = time.thread_time()
        choice = act(*arguments, **options)
        seconds[choice.number - 1] = time.thread_time() - start
        return choice

    made.act = timed  # type: ignore[method-assign]
    labelled = {"labelled": LABELLED, "full": len(table)}.get(method, 0)
    done = replay_outcomes(made, table, labelled=labelled, max_delay=LATE if method == "late" else 0, seed=seed)
    spent = float(np.sum(done.counted))
    assert np.all(made.spent <= budget.limit)
    return Result(
        method,
        share,
        seed,
        float(done.rewards.mean()),
        spent / budget.limit,
        done.prices,
        seconds + prompts.seconds[order],
    )


def threshold(table: OutcomeTable, budget: Budget, seed: int, *, again: bool) -> tuple[float, float, NDArray[Any]]:
    """Explore, regress, tune a price on what was seen, once or again and again; the same guard."""
    rng = np.random.default_rng(seed)
    T, K = table.rewards.shape
    d = table.contexts.shape[1]
    excess = table.costs - table.costs.min(axis=1, keepdims=True)
    gram, sums = np.tile(np.eye(d), (K, 1, 1)), np.zeros((K, d))
    weights: NDArray[Any] = np.zeros((K, d))
    price, left, earned = 0.0, budget.limit * (1 - 1e-12), 0.0
    prices = np.zeros(T)
    for t in range(T):
        x, c = table.contexts[t], excess[t]
        if t == EXPLORE or (again and t > EXPLORE and t % RETUNE == 0):
            weights = np.linalg.solve(gram, sums[:, :, None])[:, :, 0]
            price = _tuned(table.contexts[:t] @ weights.T, excess[:t], left / (T - t))
        wanted = int(rng.integers(K)) if t < EXPLORE else int((weights @ x - price * c).argmax())
        action = wanted if c[wanted] <= left else int(c.argmin())
        left -= c[action]
        earned += table.rewards[t, action]
        gram[action] += np.outer(x, x)
        sums[action] += table.rewards[t, action] * x
        prices[t] = price
    return earned / T, budget.limit - left, prices


def _tuned(scores: NDArray[Any], excess: NDArray[Any], rate: float) -> float:
    """Return the price at which these requests would have cost `rate` each."""
    low, high = 0.0, 10.0 / max(float(excess.max()), 1e-300) * 100
    rows = np.arange(len(scores))
    for _ in range(50):
        middle = (low + high) / 2
        if excess[rows, (scores - middle * excess).argmax(axis=1)].mean() > rate:
            low = middle
        else:
            high = middle
    return high


def ceilings(prompts: Prompts, share: float) -> dict[str, float]:
    """Hindsight, per request."""
    table, budget = prompts.table, prompts.budget(share)
    found = {"row": best_choices(table.rewards, table.costs, budget, "rows")}
    if len(np.unique(prompts.subjects)) > 1:
        found["class"] = best_choices(table.rewards, table.costs, budget, "classes", classes=prompts.subjects)
    for name, best in found.items():
        if best.gap > 1e-6 * best.value:
            raise AssertionError(f"the {name} benchmark is not certified: gap {best.gap}")
    return {name: best.value / len(table) for name, best in found.items()}


def report(prompts: Prompts, results: list[Result], shares: Sequence[float], methods: Sequence[str]) -> str:
    """Return the table as text."""
    means = prompts.table.rewards.mean(axis=0)
    cheapest = int(prompts.table.costs[0].argmin())
    lines = [
        f"{prompts.name}: {len(prompts.table):,} requests, {len(prompts.models)} models; "
        f"cheapest {means[cheapest]:.4f}, best {means.max():.4f}",
        f"{'method':<10}" + "".join(f"{f'budget {share:g}':>28}" for share in shares) + f"{'p99 CPU time':>16}",
    ]
    for method in methods:
        line, seconds = f"{method:<10}", np.zeros(0)
        for share in shares:
            own = [r for r in results if r.method == method and r.share == share]
            scores = scores_of(results, method, share)
            error = scores.std(ddof=1) / np.sqrt(len(scores)) if len(scores) > 1 else 0.0
            line += f"{scores.mean():>13.4f} ± {error:.4f} {np.mean([r.used for r in own]):>6.1%}"
            seconds = np.concatenate([seconds, *(r.decision for r in own)])
        lines.append(line + (f"{np.percentile(seconds, 99) * 1e3:>13.2f} ms" if len(seconds) else ""))
    tops = [ceilings(prompts, share) for share in shares]
    lines += [
        f"{name:<10}" + "".join(f"{top[name]:>13.4f}{'':>15}" for top in tops) + "  (hindsight)" for name in tops[0]
    ]
    first, *rest = methods
    if rest and len({r.seed for r in results}) > 1:
        lines.append(f"{first} less …, on the same orders: mean ± standard error, orders in which it is ahead")
        for method in rest:
            line = f"{method:<10}"
            for share in shares:
                ahead = scores_of(results, first, share) - scores_of(results, method, share)
                error = ahead.std(ddof=1) / np.sqrt(len(ahead))
                line += f"{ahead.mean():>+13.4f} ± {error:.4f} {np.count_nonzero(ahead > 0):>3}/{len(ahead)} "
            lines.append(line)
    most = max(r.used for r in results)
    return "\n".join([*lines, f"largest share of a budget that was spent: {most:.6%}"])


def scores_of(results: list[Result], method: str, share: float) -> NDArray[Any]:
    """Of one method at one budget, in the order of the seeds."""
    own = [r for r in results if r.method == method and r.share == share]
    return np.array([r.quality for r in sorted(own, key=lambda r: r.seed)])


def figure(prompts: Prompts, results: list[Result], shares: Sequence[float], methods: Sequence[str], out: Path) -> Path:
    """Quality against money for each method, and the price over time."""
    from longterm.lab.report.style import curve_style, publication_style, set_plain_ticks

    with publication_style() as plt:
        drawing, (left, right) = plt.subplots(1, 2, figsize=(11, 4.6), layout="constrained")
        means = prompts.table.rewards.mean(axis=0)
        cheapest = float(means[int(prompts.table.costs[0].argmin())])
        for k, method in enumerate(methods):
            scores = [np.mean([r.quality for r in results if r.method == method and r.share == s]) for s in shares]
            line = {
                "color": curve_style(k).colour,
                "marker": curve_style(k).marker,
                "linewidth": 2.2 if method == "thompson" else 1,
            }
            left.plot(shares, scores, label=method, markersize=5, **line)
        left.plot([0, 1], [cheapest, float(means.max())], "k:", linewidth=0.8, label="random mix")
        for name in ceilings(prompts, shares[0]):
            found = [ceilings(prompts, s)[name] for s in shares]
            left.plot(shares, found, "k--" if name == "row" else "k-.", linewidth=1, label=f"{name}, in hindsight")
        left.set(xlabel="budget: 0 the cheapest, 1 the best model", ylabel="mean score", title=prompts.name)
        for k, share in enumerate(shares):
            shown = "thompson" if "thompson" in methods else methods[0]
            own = next(r for r in results if r.method == shown and r.share == share)
            scale = float(prompts.excess[:, prompts.best].mean())
            right.plot(own.prices * scale, color=curve_style(k).colour, label=f"budget {share:g}", linewidth=0.8)
        right.set(xlabel="request", ylabel="score asked for the mean extra cost", title="price of money", yscale="log")
        right.set_ylim(bottom=max(right.get_ylim()[0], 1e-4))  # where money is left over its price falls for ever
        set_plain_ticks(right.yaxis)
        # Below the panels: a legend inside would lie on the curves.
        drawing.legend(*left.get_legend_handles_labels(), loc="outside lower left", ncols=4, fontsize=8, frameon=False)
        prices = right.get_legend_handles_labels()
        drawing.legend(*prices, loc="outside lower right", ncols=3, fontsize=8, frameon=False)
        out.mkdir(parents=True, exist_ok=True)
        path = out / f"routing-{prompts.name}.png"
        drawing.savefig(path, dpi=150, metadata={"Software": None})
    return path


def find(name: str) -> Path:
    """Return a published table of the data folder."""
    folders = [os.environ.get("LONGTERM_DATA"), Path(__file__).parents[1].parent / "shared" / "data"]
    for folder in folders:
        if folder and (Path(folder) / name).is_file():
            return Path(folder) / name
    raise InputError("table", f"{name} is not in {folders}", "Put it into a folder and name that in LONGTERM_DATA")


def _run(job: tuple[Prompts, str, float, str, int]) -> Result:
    with single_threaded():  # two threads are slower than one for matrices as small as these
        return run(*job)


def _requested_tables(chosen: argparse.Namespace) -> Iterator[Prompts]:
    """Yield the tables of the command line, or both published ones if none is named."""
    if chosen.invented is not None:
        yield invented(chosen.invented, 3000, chosen.size)
    names = chosen.tables or ([] if chosen.table or chosen.invented is not None else list(TABLES))
    sources = [(find(TABLES[name]), name) for name in names]
    if chosen.table is not None:
        sources.append((chosen.table, "given"))
    for path, name in sources:
        prices = dict(PRICES)
        listed = chosen.prices or (find("llmrouter-prices.json") if name == "nine" else None)
        if listed is not None:
            for model, price in json.loads(listed.read_text(encoding="utf-8")).items():
                prices[model] = float(price["input_price"] if isinstance(price, dict) else price)
        yield load(path, prices, chosen.answer_tokens, chosen.size)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the arena and return the exit status."""
    parser = argparse.ArgumentParser(
        description=EXPLANATION, epilog=WHERE, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("tables", nargs="*", choices=[*TABLES, []], metavar="mmlu|nine", help="published tables")
    parser.add_argument("--table", type=Path, help="another table (CSV)")
    parser.add_argument("--invented", type=int, metavar="SEED", help="an invented table of 3,000 prompts")
    parser.add_argument("--prices", type=Path, help="JSON: model → dollars per million tokens, or {input_price: …}")
    parser.add_argument("--answer-tokens", type=float, default=1.0, help="of an answer (default 1: a letter)")
    parser.add_argument("--budgets", nargs="+", type=float, default=[0.1, 0.25, 0.5], help="default 0.1 0.25 0.5")
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=list(METHODS))
    parser.add_argument("--order", choices=("random", "subject"), default="random")
    parser.add_argument("--orders", type=int, default=6, help="how many orders (default 6)")
    parser.add_argument("--size", type=int, default=32, help="places of the word hash (default 32)")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--out", type=Path, default=Path("results"), help="folder for figures (default results)")
    chosen = parser.parse_args(arguments)
    try:
        for prompts in _requested_tables(chosen):
            jobs = [
                (prompts, method, share, chosen.order, seed)
                for method in chosen.methods
                for share in chosen.budgets
                for seed in range(chosen.orders)
            ]
            if chosen.jobs > 1:
                with ProcessPoolExecutor(chosen.jobs) as pool:
                    results = list(pool.map(_run, jobs))
            else:
                results = [_run(job) for job in jobs]
            sys.stdout.write(report(prompts, results, chosen.budgets, chosen.methods) + "\n")
            sys.stdout.write(f"wrote {figure(prompts, results, chosen.budgets, chosen.methods, chosen.out)}\n\n")
    except InputError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
