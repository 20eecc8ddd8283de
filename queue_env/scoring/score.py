"""The tail score of policies, with what is reported beside it, and paired comparisons: `score` and `score_all`."""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import integrate, special

from queue_env._version import __version__
from queue_env.distributions.checks import positive, refuse
from queue_env.plan import make_plan
from queue_env.result import QUANTILES, Result
from queue_env.reward import TailCost, tail_cost
from queue_env.scenarios import Scenario, scenario
from queue_env.scoring.agent_runs import plain_run
from queue_env.scoring.curve import MOST_JOBS, check_run, run_decomposition, runnable_policy
from queue_env.scoring.decomposition import Decomposition
from queue_env.scoring.executors import Cluster
from queue_env.scoring.strata import check_decomposable
from queue_env.tail import Estimate, counts_above, jackknife, quotient

__all__ = ["TAIL_RANGE", "Score", "ScoreGrid", "Scores", "score", "score_all", "score_grid"]

FloatArray: TypeAlias = NDArray[np.float64]

TAIL_RANGE = (1.0, 1e4)  # mean service times
_PER_DECADE = 16  # points of the integral over ln t
PLAIN_JOBS = 10_000_000
DEFAULT_WIDTH = 0.02
_DECADES = 4.0  # times as wide may the intervals at the decades be


@dataclass(frozen=True, kw_only=True, eq=False)
class Score:
    """What a policy is worth on a scenario. Lower is better.

    Attributes:
        policy: label.
        scenario: the scenario as plain data.
        score: 1/ln(t1/t0) ∫ R(t) dt/t over t0 <= t <= t1, R(t) = P[T>t]/F̄(ct); NaN where there is no bound (patience).
        low, high: ends of its 95 % interval.
        t: `(times,)` decades of mean service times [time].
        normalised_tail, tail_low, tail_high: `(times,)` R(t) and its 95 % intervals.
        curve: `(points, 4)` t [time], R(t) and the ends of its interval where the integral is computed.
        plain: a plain run, for means and quantiles.
        jobs: simulated in all.
        seconds: that it took.
        seed: of everything.
        reached: whether the wanted precision was.
        estimate: of (score, R at the decades), by replication, for paired comparisons; None where there is no score.
    """

    policy: str
    scenario: dict[str, Any]
    score: float
    low: float
    high: float
    t: FloatArray
    normalised_tail: FloatArray
    tail_low: FloatArray
    tail_high: FloatArray
    curve: FloatArray = field(repr=False)
    plain: Result = field(repr=False)
    jobs: int
    seconds: float
    seed: int
    reached: bool
    estimate: Estimate | None = field(repr=False)

    @property
    def scaled_curve(self) -> FloatArray:
        """The curve with t in mean service times, shape (points, 4)."""
        return self.curve * [1 / self.plain.sizes.mean, 1, 1, 1]

    def to_dict(self) -> dict[str, Any]:
        """A row of the scoreboard as plain data; numbers that are not there are None."""
        keys = ("t", "value", "low", "high")
        rows = zip(self.t, self.normalised_tail, self.tail_low, self.tail_high, strict=True)
        tails = [dict(zip(keys, map(_number, row), strict=True)) for row in rows]
        plain = {name: _interval(self.plain, name) for name in ("mean_response", "mean_slowdown", "throughput")}
        return {
            "policy": self.policy,
            "scenario": self.scenario["name"],
            "score": _number(self.score),
            "score_low": _number(self.low),
            "score_high": _number(self.high),
            "normalised_tail": tails,
            "curve": dict(zip(keys, self.curve.T.tolist(), strict=True)),
            **{name + end: value for name, values in plain.items() for end, value in values.items()},
            "abandonment": _number(self.plain.abandoned / max(self.plain.jobs, 1)),
            "quantiles": {f"{q:g}": _number(float(self.plain.quantile(q))) for q in QUANTILES},
            "jobs": self.jobs,
            "seconds": self.seconds,
            "seed": self.seed,
            "reached": self.reached,
            "version": __version__,
            "model": self.scenario,
        }


class Scores(Sequence[Score]):
    """Scores of several policies on one scenario, from the same streams of jobs, best first.

    Args:
        scores: at least one.
    """

    def __init__(self, scores: Iterable[Score]) -> None:
        self._scores = sorted(scores, key=lambda row: math.inf if math.isnan(row.score) else row.score)

    def __getitem__(self, index: Any) -> Any:
        return self._scores[index]

    def __iter__(self) -> Iterator[Score]:
        return iter(self._scores)

    def __len__(self) -> int:
        return len(self._scores)

    def named(self, policy: str) -> Score:
        """The score of a policy by its label.

        Raises:
            ValueError: there is none.
        """
        for row in self._scores:
            if row.policy == policy:
                return row
        refuse("scores", "policy", f"one of {', '.join(row.policy for row in self._scores)}", policy)

    def difference(self, a: str, b: str, level: float = 0.95) -> tuple[float, float, float, float]:
        """The score of policy a less that of b, from replications paired by their streams.

        Returns:
            The difference, both ends of its interval, and the probability that a is better (has the lower score):
            Student's, with a flat prior.

        Raises:
            ValueError: there is no such policy, or one has no score.
        """
        first, second = (self.named(label).estimate for label in (a, b))
        if first is None or second is None:
            refuse("scores", "policies", "of a scenario with a tail score", (a, b))
        values = [_pseudo_values(estimate) for estimate in (first, second)]
        count = min(map(len, values))
        rows = values[0][:count] - values[1][:count]
        error = float(rows.std(ddof=1)) / math.sqrt(count)
        value = float(self.named(a).score - self.named(b).score)
        half = float(special.stdtrit(count - 1, (1 + level) / 2)) * error
        better = float(special.stdtr(count - 1, -value / error)) if error > 0 else 0.5
        return value, value - half, value + half, better

    def to_list(self) -> list[dict[str, Any]]:
        """The rows, each with the probability that it beats each of the others."""
        return [row.to_dict() | {"beats": self._beats(row)} for row in self]

    def _beats(self, row: Score) -> dict[str, float]:
        others = [other for other in self if other is not row and other.estimate is not None]
        if row.estimate is None:
            return {}
        return {other.policy: self.difference(row.policy, other.policy)[3] for other in others}


def score_all(policies: Sequence[Any], source: Any, **options: Any) -> Scores:
    """Score several policies on a scenario; the arguments are those of `score`.

    Raises:
        ValueError: as `score`; or two policies have the same label.
    """
    if not policies:
        refuse("score", "policies", "at least one", policies)
    rows = [score(policy, source, **options) for policy in policies]
    labels = [row.policy for row in rows]
    if len(set(labels)) < len(labels):
        refuse("score", "policies", "all different", labels)
    return Scores(rows)


def score(
    policy: Any,
    source: Any,
    *,
    tail_range: Sequence[float] = TAIL_RANGE,
    rel_half_width: float = DEFAULT_WIDTH,
    seed: int = 0,
    plain_jobs: int = PLAIN_JOBS,
    most_jobs: float = MOST_JOBS,
    threads: int | None = None,
    ray: Cluster = None,
    progress: bool | None = None,
    checkpoint: str | Path | None = None,
) -> Score:
    """Score a policy on a scenario by its tail.

    The score and the normalised tail come from the largest-job decomposition, means and quantiles from a plain run.
    Where the tail is so light that the range is cut short, all comes from the plain run.

    Args:
        policy: as for `simulate`; or an agent, by `agent_policy`.
        source: a scenario: its name, a mapping, or a `Scenario`. Where jobs have patience there is no tail score, and
            the row has the rest.
        tail_range: t0 and t1 [mean service times].
        rel_half_width: of the 95 % interval of the score; those of R at the decades may be four times as wide.
        seed: the result is a function of it, whatever the threads; policies with the same seed meet the same streams.
        plain_jobs: jobs of the plain run; of an agent 400,000 at most.
        most_jobs: jobs that may be simulated for the score.
        threads: replications run at once; one for each core if not given.
        ray: a Ray cluster to run replications on in place of threads, by its address, or True; see `connected`. The
            plain run stays on this machine.
        progress: whether to show bars; only on a terminal, if not given.
        checkpoint: file that keeps what is finished of the decomposition.

    Raises:
        ValueError: an argument is not allowed; or the system is not stable under the policy.
    """
    model = scenario(source)
    check_run("score", seed=seed, level=None, most_jobs=most_jobs, threads=threads, ray=ray)
    make_plan(model, ["srpt"], jobs=plain_jobs)  # whose check of the number of jobs is wanted before any work
    began = time.perf_counter()
    if model.patience is not None:
        plain = plain_run(model, policy, jobs=plain_jobs, seed=seed, threads=threads, progress=progress)
        return _row(model, plain, None, None, None, seed, began, True)
    check_decomposable(model, "score")
    runnable = runnable_policy(model, policy, "score")
    cost = tail_cost(model, tail_range)
    grid = score_grid(model, cost)
    times, columns = grid.times, grid.columns
    widths = np.where(grid.decades, _DECADES, np.inf)
    wanted = positive("score", "rel_half_width", rel_half_width) * np.array([1.0, 1.0, *widths])
    if cost.t1 < tail_range[1] * model.sizes.mean:
        # Light tails: no single job makes T large, and what there is of a range a plain run sees best.
        plain = plain_run(model, policy, jobs=plain_jobs, seed=seed, threads=threads, progress=progress)
        estimate = _from_plain(plain, times, columns)
        asked = np.isfinite(wanted)
        reached = bool(np.all(estimate.half_width()[asked] <= wanted[asked] * estimate.value[asked]))
        return _row(model, plain, None, grid, estimate, seed, began, reached)
    found = run_decomposition(
        "score",
        model,
        runnable,
        times,
        columns,
        wanted,
        seed=seed,
        level=None,
        most_jobs=most_jobs,
        threads=threads,
        ray=ray,
        progress=progress,
        checkpoint=checkpoint,
    )
    plain = plain_run(model, policy, jobs=plain_jobs, seed=seed, threads=threads, progress=progress)
    return _row(model, plain, found, grid, found.estimate, seed, began, found.reached)


def _from_plain(plain: Result, times: FloatArray, columns: FloatArray) -> Estimate:
    """Return the functions of the tail that a plain run gives, with its rows as replications."""
    above = counts_above(plain.response_counts, times)
    rows = np.column_stack([plain.response_counts.sum(axis=1), above]) @ columns
    return jackknife(rows, lambda sums: quotient(sums, sums[..., :1]))


class ScoreGrid(NamedTuple):
    """Times [time], which of them are decades, and the functions of the tail at 0 and at them, `(1 + times, columns)`.

    The columns are one, the score, and R at the times.
    """

    times: FloatArray
    decades: NDArray[np.bool_]
    columns: FloatArray


def score_grid(model: Scenario, cost: TailCost) -> ScoreGrid:
    """Return where and how the integral over ln t is computed, which is Simpson's."""
    span = math.log10(cost.t1 / cost.t0)
    points = 2 * max(4, math.ceil(_PER_DECADE * span / 2)) + 1
    grid = np.geomspace(cost.t0, cost.t1, points)
    decades = model.sizes.mean * 10.0 ** np.arange(-12, 13)
    decades = decades[(decades >= cost.t0 * (1 - 1e-12)) & (decades <= cost.t1 * (1 + 1e-12))]
    times = np.unique(np.concatenate([grid, decades]))
    times = times[np.concatenate([[True], np.diff(times) > 1e-9 * times[1:]])]
    bound = np.asarray(model.sizes.tail(model.c * times))
    weights = integrate.simpson(np.eye(points), x=np.log(grid), axis=-1) / math.log(cost.t1 / cost.t0)
    places, marked = (np.argmin(abs(np.log(times[:, None] / wanted)), axis=0) for wanted in (grid, decades))
    columns = np.zeros((1 + len(times), 2 + len(times)))
    columns[0, 0] = 1.0
    np.add.at(columns[:, 1], 1 + places, weights / bound[places])
    columns[1:, 2:] = np.diag(1 / bound)
    return ScoreGrid(times, np.isin(np.arange(len(times)), marked), columns)


def _row(
    model: Scenario,
    plain: Result,
    found: Decomposition | None,
    grid: ScoreGrid | None,
    estimate: Estimate | None,
    seed: int,
    began: float,
    reached: bool,
) -> Score:
    t, curve, kept, shown = np.empty(0), np.empty((0, 4)), None, np.full((2, 3), np.nan)
    if estimate is not None and grid is not None:
        value, (low, high) = estimate.value, estimate.ends()
        t, curve = grid.times[grid.decades], np.column_stack([grid.times, value[2:], low[2:], high[2:]])
        keep = np.flatnonzero(np.concatenate([[True, True], grid.decades]))
        shown = np.column_stack([value, low, high])[keep]
        kept = Estimate(estimate.value[keep], estimate.without[:, keep], estimate.used)
    return Score(
        policy=plain.policy,
        scenario=model.to_dict(),
        score=float(shown[1, 0]),
        low=float(shown[1, 1]),
        high=float(shown[1, 2]),
        t=t,
        normalised_tail=shown[2:, 0],
        tail_low=shown[2:, 1],
        tail_high=shown[2:, 2],
        curve=curve,
        plain=plain,
        jobs=plain.simulated + (0 if found is None else found.jobs),
        seconds=time.perf_counter() - began,
        seed=seed,
        reached=reached,
        estimate=kept,
    )


def _pseudo_values(estimate: Estimate) -> FloatArray:
    count = len(estimate.without)
    return np.asarray(count * estimate.value[1] - (count - 1) * estimate.without[:, 1])


def _interval(result: Result, name: str) -> dict[str, float | None]:
    interval = result.interval(name)
    return {"": _number(interval.value), "_low": _number(interval.low), "_high": _number(interval.high)}


def _number(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None
