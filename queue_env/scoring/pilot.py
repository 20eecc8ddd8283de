"""How many runs of each class of sizes: the pilot of the largest-job decomposition."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from queue_env.scoring.replications import Replication

__all__ = [
    "FIRST_BATCH",
    "PLANNED",
    "Allocation",
    "Known",
    "Plan",
    "Replicator",
    "Seen",
    "allocate_runs",
    "jobs_of",
    "plan_runs",
]

FloatArray: TypeAlias = NDArray[np.float64]
IntArray: TypeAlias = NDArray[np.int64]

FIRST_BATCH = 20  # replications before an interval is looked at
PLANNED = 32  # replications, after which it should be narrow enough
_REPLICATIONS = 8  # of each part of the pilot
_JOBS = 30_000  # expected of each class in each of them
_MOST_IN_PILOT = 64  # runs of a class
_SHARES = (0.03, 0.05, 0.08)  # of the runs of a replication, which those of the later parts have
_BUDGET, _MOST_JOBS = 0.1, 5e8  # of the jobs that may be simulated, and jobs, that bound each part
_FEW = 6  # runs for the mean of a class, fewer of its own are no knowledge
_MORE, _NEAR = 64, 4  # degrees of freedom for its variance, and classes beside it at most
_STEEPEST = 4.0  # ratio of the variances of two classes that are side by side
_WILDEST = 4.0  # squared coefficient of variation believed of sizes that few runs have had
_FAR = 1.5  # times as large as those that have had runs
_MOST_RUNS = 200_000  # of a class in a replication
_LEAST_SHARE, _ENOUGH = 0.001, 20_000  # of the jobs, for each class; and runs with which it has enough anyway
_LEAST = 1e-9  # runs of a class in a replication
_FACTOR = 2.04  # Student's 0.975 quantile for so many
_SPREAD, _SPREAD_AT_A_PACE = 0.2, 0.5  # of the mean, how wrong it may be: of few runs, or if it is foreseen
_ROUNDS = 40  # of weights


class Replicator(Protocol):
    """Makes replications: `Blocks` under a policy of the kernel, or another kind of run."""

    @property
    def level(self) -> int:
        """Of the blocks."""
        ...

    def replicate(self, seed: np.random.SeedSequence, counts: FloatArray) -> Replication:
        """Make one replication with so many runs of each class."""
        ...

    @property
    def probabilities(self) -> FloatArray:
        """P[S in class], shape (classes,)."""
        ...

    @property
    def sizes(self) -> FloatArray:
        """The median of each class, shape (classes,)."""
        ...

    def check(self) -> None:
        """Raise ValueError if blocks do not end."""
        ...

    def expected_jobs(self) -> FloatArray:
        """A guess of the jobs that a run of each class takes, shape (classes,)."""
        ...

    def foreseen(self, pace: FloatArray) -> FloatArray:
        """What a run that may be cut adds at a pace, shape (classes, columns); NaN for classes of shorter runs."""
        ...


class Seen(NamedTuple):
    """Sums over replications; attributes as of `Replication`."""

    totals: FloatArray
    squares: FloatArray
    lost: FloatArray
    lost_squares: FloatArray
    lost_totals: FloatArray
    paces: FloatArray
    jobs: IntArray
    runs: IntArray

    @property
    def pace(self) -> FloatArray:
        """What a unit of time adds in long runs, shape (columns,); 0 before there have been enough."""
        added, looked, runs = self.paces[:-2], self.paces[-2], self.paces[-1]
        return np.asarray(added / looked if runs >= _FEW else 0.0 * added)

    def mended(self) -> tuple[FloatArray, FloatArray]:
        """Return sums and sums of squares as if what cuts take off were always what the pace foresees."""
        pace = self.pace
        squares = self.squares + 2 * pace * self.lost_totals + pace**2 * self.lost_squares[:, None]
        return self.totals + pace * self.lost[:, None], squares

    @classmethod
    def of(cls, found: list[Replication]) -> Seen:
        """Return the sums over replications."""
        sums: Any = {name: np.asarray(sum(getattr(r, name) for r in found)) for name in cls._fields}
        return cls(**sums)

    def more(self, found: list[Replication]) -> Seen:
        """Return the sums with those of further replications."""
        if not found:
            return self
        new = Seen.of(found)
        sums: Any = {name: getattr(self, name) + getattr(new, name) for name in self._fields}
        return Seen(**sums)


class Plan(NamedTuple):
    """The level of the blocks, and what the pilot has found at it.

    Attributes:
        level: of least work.
        spent: jobs that the pilot took, at all levels.
        plain: jobs of the plain run of a replication.
        seen: sums over its replications.
    """

    level: int
    spent: int
    plain: int
    seen: Seen


class Known(NamedTuple):
    """What is taken as known of runs; whatever it is, it does not move the estimate.

    Attributes:
        mean: `(classes, columns)` what a run of each class adds.
        pace: `(columns,)` what a unit of time adds in long runs.
    """

    mean: FloatArray
    pace: FloatArray


class Allocation(NamedTuple):
    """What is foreseen for a replication.

    Attributes:
        counts: `(classes,)` runs of each class.
        known: what is taken as known of them.
        work: jobs that the runs are expected to take.
    """

    counts: FloatArray
    known: Known
    work: float


class _Moments(NamedTuple):
    """Of one run of each class.

    Attributes:
        mean, variance: `(classes, columns)` of what it adds.
        known: `(classes, columns)` the mean, where the class itself has had enough runs, or else what is foreseen at
            the pace of long ones, or else 0. What is taken as known is in all replications; what they estimate differs
            between them, and so intervals allow for it.
        spread: `(classes,)` of the mean, by how much it may be wrong: the less, the more runs there have been.
        jobs: `(classes,)` that it takes.
    """

    mean: FloatArray
    variance: FloatArray
    known: FloatArray
    spread: FloatArray
    jobs: FloatArray


def plan_runs(
    make: Callable[[int], Replicator],
    levels: list[int],
    wanted: FloatArray,
    seed: np.random.SeedSequence,
    most_jobs: float,
    run: Callable[[Replicator, list[np.random.SeedSequence], FloatArray], Iterator[Replication]],
) -> Plan:
    """Find the level of least work, and see enough to allocate runs.

    First, classes get equally many jobs, whatever the level; then, at the best level, three times about what is thought
    to be right by then, so that more is known of the classes which matter, and each a run, for what is not known of
    the largest sizes makes work.

    Args:
        make: builds the replicator for a level.
        levels: to choose from.
        wanted: `(columns,)` relative half-widths of the 95 % intervals.
        seed: of the pilot.
        most_jobs: jobs that may be simulated in all.
        run: makes replications with these seeds and runs of each class.

    Raises:
        ValueError: blocks do not end at any of the levels.
    """
    choices, spent, error = [], 0, None
    for level in levels:
        replicator = make(level)
        counts = _even_counts(replicator, most_jobs)
        try:
            replicator.check()
            found = list(run(replicator, seed.spawn(_REPLICATIONS), counts))
        except ValueError as failure:  # at another level, blocks may end
            error = failure
            continue
        spent += jobs_of(found)
        seen = Seen.of(found)
        planned = allocate_runs(seen, replicator, wanted)
        choices.append((planned, level, seen, found[0].plain))
    if not choices:
        assert error is not None
        raise error
    planned, level, seen, plain = min(choices, key=lambda choice: choice[0].work)
    replicator, most = make(level), min(_BUDGET * most_jobs, _MOST_JOBS)
    one_each = 1.0 / (len(_SHARES) * _REPLICATIONS)
    one_each *= min(1.0, most / (_REPLICATIONS * one_each * float(replicator.expected_jobs().sum())))
    for share in _SHARES:
        part = min(share, most / max(PLANNED * planned.work, 1.0)) * planned.counts
        later = list(run(replicator, seed.spawn(_REPLICATIONS), np.maximum(part, one_each)))
        spent, seen = spent + jobs_of(later), seen.more(later)
        planned = allocate_runs(seen, replicator, wanted)
    return Plan(level, spent, plain, seen)


def _even_counts(replicator: Replicator, most_jobs: float) -> FloatArray:
    jobs = replicator.expected_jobs()
    counts = np.minimum(_JOBS / jobs, _MOST_IN_PILOT)
    return np.asarray(counts * min(1.0, _BUDGET * most_jobs / (_REPLICATIONS * float(counts @ jobs))))


def allocate_runs(seen: Seen, replicator: Replicator, wanted: FloatArray, most_jobs: float = math.inf) -> Allocation:
    """Return the runs of each class in a replication so that so many of them give the wanted precision.

    Args:
        seen: by replications so far.
        replicator: that has made them.
        wanted: `(columns,)` relative half-widths of the 95 % intervals.
        most_jobs: of a replication.
    """
    moments = _moments(seen, replicator)
    counts = _least_counts(moments, replicator.probabilities, wanted)
    least = _LEAST_SHARE * float(counts @ moments.jobs) / moments.jobs
    counts = np.maximum(counts, np.minimum(least, _ENOUGH))
    if not counts.any():  # nothing has been seen above any time
        counts = _JOBS / moments.jobs
    counts = np.asarray(counts * min(1.0, most_jobs / float(counts @ moments.jobs)))
    return Allocation(counts, Known(moments.known, seen.pace), float(counts @ moments.jobs))


def _least_counts(moments: _Moments, probabilities: FloatArray, wanted: FloatArray) -> FloatArray:
    """Return the runs of each class in a replication that take the least jobs, shape (classes,).

    Neyman's allocation for several columns: the square of the number of runs of a class is in proportion to the sum of
    what the variances of the columns have from it, weighted, over the jobs of a run. Weights (multipliers of Lagrange)
    grow where a column is not yet known well enough.

    Args:
        moments: of a run of each class.
        probabilities: of the classes.
        wanted: relative half-widths of the columns.
    """
    allowed = PLANNED * (probabilities @ moments.mean * wanted / _FACTOR) ** 2
    seen = allowed > 0
    unknown = (moments.mean - moments.known) ** 2 + (moments.spread[:, None] * moments.mean) ** 2
    variance = probabilities[:, None] ** 2 * (moments.variance + unknown)
    share = variance[:, seen] / allowed[seen]
    weights = np.ones(int(seen.sum()))
    for _ in range(_ROUNDS):
        counts = np.clip(np.sqrt(share @ weights / moments.jobs), _LEAST, _MOST_RUNS)
        missing = (share / counts[:, None]).sum(axis=0)
        weights *= missing
    return np.asarray(np.minimum(counts * missing.max(initial=0.0), _MOST_RUNS))


def _moments(seen: Seen, replicator: Replicator) -> _Moments:
    """Estimate moments by class.

    A class that has had few runs takes its neighbours' too. Where these are of far smaller sizes, more is believed
    than what they have shown: that the number of jobs above a time grows with the size, as it does where a very large
    job holds up others, and that it differs by about as much as its mean. Of runs so long that they may be cut, it is
    the pace that says what those add which few runs have been of.

    No variance is less than a part of those of the classes beside it: of many runs all may be above a time, or none,
    and yet the next is not, and the estimate should not be at the mercy of it.
    """
    expected, sizes = replicator.expected_jobs(), replicator.sizes
    (totals, squares), jobs, runs = seen.mended(), seen.jobs, seen.runs
    scatter = np.maximum(squares - totals**2 / np.maximum(runs, 1)[:, None], 0.0)
    freedom, foreseen = np.maximum(runs - 1, 0), replicator.foreseen(seen.pace)
    if seen.paces[-1] < _FEW:  # no pace is known
        foreseen = np.full_like(foreseen, np.nan)
    mean, variance, cost = np.zeros_like(totals), np.zeros_like(totals), np.zeros(len(runs))
    for k in range(len(runs)):
        near = _neighbours(runs, k, _FEW, len(runs))
        count = max(int(runs[near].sum()), 1)
        larger = max(float(sizes[k] * count / max(float(runs[near] @ sizes[near]), sizes[k])), 1.0)
        mean[k] = totals[near].sum(axis=0) / count
        wide = _neighbours(freedom, k, _MORE, max(_NEAR, near.stop - k))
        variance[k] = scatter[wide].sum(axis=0) / max(int(freedom[wide].sum()), 1)
        if larger > _FAR and not np.isnan(foreseen[k, 0]):
            variance[k] *= larger**2
        elif larger > _FAR:
            variance[k] = np.clip(variance[k], mean[k] ** 2, _WILDEST * mean[k] ** 2) * larger**2
            mean[k] *= larger
        longer = float(expected[k] * count / max(float(runs[near] @ expected[near]), 1.0))
        cost[k] = longer * max(jobs[near].sum() / count, 1.0)
    for k in range(len(runs) - 1):
        variance[k + 1] = np.maximum(variance[k + 1], variance[k] / _STEEPEST)
    for k in reversed(range(len(runs) - 1)):
        variance[k] = np.maximum(variance[k], variance[k + 1] / _STEEPEST)
    spread = _SPREAD * np.sqrt(_FEW / (_FEW + runs))
    known = np.where(runs[:, None] >= _FEW, mean, 0.0)
    paced = ~np.isnan(foreseen[:, 0]) & (runs < _FEW)
    mean[paced], known[paced], spread[paced] = foreseen[paced], foreseen[paced], _SPREAD_AT_A_PACE
    return _Moments(mean, variance, known, spread, cost)


def _neighbours(seen: IntArray, k: int, wanted: int, most: int) -> slice:
    """Return the classes around one of which together so much has been seen, at most so many on each side."""
    reach = 0
    while seen[max(k - reach, 0) : k + reach + 1].sum() < wanted and reach < most:
        reach += 1
    return slice(max(k - reach, 0), k + reach + 1)


def jobs_of(found: list[Replication]) -> int:
    """Return the jobs simulated in replications."""
    return sum(int(r.jobs.sum()) + r.plain for r in found)
