"""The largest-job decomposition from pilot to intervals: how many runs of each class, and when it is enough."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import NamedTuple, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from queue_env.checkpoint import Checkpoint
from queue_env.progress import Advance, job_progress
from queue_env.scoring.blocks import Replication
from queue_env.tail import Estimate, jackknife, quotient

__all__ = ["Decomposition", "Replicator", "decompose"]

FloatArray: TypeAlias = NDArray[np.float64]
IntArray: TypeAlias = NDArray[np.int64]

FIRST_BATCH = 20  # replications before an interval is looked at
LATER_BATCH = 10
_PILOT = 8
_PILOT_JOBS = 20_000  # of each class and replication, where one run does not take more
_PILOT_RUN = 3_000_000  # jobs that a single run may take
_PILOT_MOST = 64  # runs of a class
_FEW = 4  # runs in the pilot that say nothing of their class
_RAREST = 0.02  # probability of a run in a replication
_MOST_RUNS = 20_000
_FACTOR = 2.1  # Student's 0.975 quantile for 20 replications
_AIM = 0.8  # of the wanted half-width
_SPREAD = 0.1  # of the mean: least standard deviation believed of a pilot


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

    def check(self) -> None:
        """Raise ValueError if blocks do not end."""
        ...

    def expected_jobs(self) -> FloatArray:
        """A guess of the jobs that a run of each class takes, shape (classes,)."""
        ...


@dataclass(frozen=True)
class Decomposition:
    """What replications have found; the first column is the tail at 0, which is one.

    Attributes:
        sums: `(replications, columns)` estimates of each replication.
        jobs: simulated in all, with the pilot.
        level: of the blocks.
        seconds: that it took.
        reached: whether the wanted precision was reached.
    """

    sums: FloatArray
    jobs: int
    level: int
    seconds: float
    reached: bool

    @property
    def total(self) -> Estimate:
        """The first column as it was found: an estimate of one."""
        return jackknife(
            np.column_stack([self.sums[:, :1], np.ones(len(self.sums))]), lambda sums: sums[..., :1] / sums[..., 1:]
        )

    @property
    def estimate(self) -> Estimate:
        """The columns, shape (columns,), with the first as a control: it is known to be one.

        Columns share with it the fluctuation of how much time passes in blocks of large jobs, the more so the smaller
        the times. The regression on it takes that out; by the jackknife the interval knows of it.

        Source: Law, Simulation Modeling and Analysis (5th ed., 2015), section 11.4.
        """
        return _controlled(self.sums)


def _sums(found: list[Replication], replicator: Replicator) -> FloatArray:
    """Return the estimates of replications, shape (replications, columns)."""
    return np.array([replicator.probabilities @ (r.totals / r.counts[:, None]) for r in found])


def _controlled(sums: FloatArray) -> Estimate:
    """Return the mean of the columns, with the first as a control."""
    first = sums[:, :1]
    return jackknife(np.column_stack([np.ones(len(first)), sums, first * sums]), _regress)


def _regress(sums: FloatArray) -> FloatArray:
    """Return the columns at a first column of one, from sums of one, of the columns, and of their products with it."""
    width = (sums.shape[-1] - 1) // 2
    count = sums[..., :1]
    mean, product = sums[..., 1 : 1 + width] / count, sums[..., 1 + width :] / count
    covariance = product - mean[..., :1] * mean
    slope = quotient(covariance, covariance[..., :1])
    return mean - np.nan_to_num(slope) * (mean[..., :1] - 1.0)


def decompose(
    make: Callable[[int], Replicator],
    levels: list[int],
    wanted: FloatArray,
    *,
    seed: int,
    most_jobs: float,
    threads: int | None = None,
    progress: bool | None = None,
    checkpoint: Checkpoint | None = None,
    label: str = "",
) -> Decomposition:
    """Run replications until every column is known to a relative half-width, or the budget is used up.

    Args:
        make: builds the replicator for a level.
        levels: to choose from; the pilot takes the one with the least work.
        wanted: `(columns,)` relative half-widths of the 95 % intervals.
        seed: the result is a function of it, whatever the threads.
        most_jobs: jobs that may be simulated.
        threads: replications run at once; one for each core if not given.
        progress: whether to show a bar; only on a terminal, if not given.
        checkpoint: keeps what is finished.
        label: of the policy, for the bar.

    Raises:
        KeyboardInterrupt: interrupted before half of the first batch was there.
    """
    kept = _Kept(checkpoint)
    pilot_seed, main_seed = np.random.SeedSequence(seed).spawn(2)
    with ThreadPoolExecutor(threads or os.cpu_count() or 1) as pool:
        run = _Runner(pool)
        plan = kept.plan()
        if plan is None:
            plan = _pilot(make, levels, wanted, pilot_seed, most_jobs, run, progress, label)
            kept.put_plan(plan)
        replicator = make(plan.level)
        expected = FIRST_BATCH * float(plan.counts @ replicator.expected_jobs())
        found: list[Replication] = []
        reached = False
        with job_progress(int(expected), f"tail of {label}", progress) as advance:
            try:
                while not reached:
                    count = LATER_BATCH if found else FIRST_BATCH
                    found += _batch(run, replicator, kept, len(found), main_seed.spawn(count), plan.counts, advance)
                    half = _relative_half_widths(_controlled(_sums(found, replicator)))
                    reached = bool(np.all(half <= wanted))
                    spent = plan.spent + _jobs(found)
                    if spent * (len(found) + LATER_BATCH) / len(found) > most_jobs:
                        break
            except KeyboardInterrupt:
                found = kept.replications(0)
                if len(found) < FIRST_BATCH // 2:
                    raise
            finally:
                kept.save(last=True)
    jobs = plan.spent + _jobs(found)
    return Decomposition(_sums(found, replicator), jobs, plan.level, kept.seconds, reached)


def _batch(
    run: _Runner,
    replicator: Replicator,
    kept: _Kept,
    first: int,
    seeds: list[np.random.SeedSequence],
    counts: FloatArray,
    advance: Advance,
) -> list[Replication]:
    """Return the next replications: those that are kept, and then new ones, which are kept as they come."""
    found = kept.replications(first)[: len(seeds)]
    for replication in run(replicator, seeds[len(found) :], counts, advance):
        kept.add(first + len(found), replication)
        found.append(replication)
    return found


# ---- the pilot -----------------------------------------------------------------------------------


class _Plan(NamedTuple):
    """The level of the blocks, the runs of each class in a replication, and the jobs that the pilot took."""

    level: int
    counts: FloatArray
    spent: int


def _pilot(
    make: Callable[[int], Replicator],
    levels: list[int],
    wanted: FloatArray,
    seed: np.random.SeedSequence,
    most_jobs: float,
    run: _Runner,
    progress: bool | None,
    label: str,
) -> _Plan:
    """Return the plan of least work."""
    choices, spent, error = [], 0, None
    with job_progress(None, f"pilot for {label}", progress) as advance:
        for level in levels:
            replicator = make(level)
            jobs = replicator.expected_jobs()
            counts = _whole(np.minimum(np.maximum(_PILOT_JOBS / jobs, np.minimum(1.0, _PILOT_RUN / jobs)), _PILOT_MOST))
            try:
                replicator.check()
                found = list(run(replicator, seed.spawn(_PILOT), counts, advance))
            except ValueError as failure:  # under another level, blocks may end
                error = failure
                continue
            spent += _jobs(found)
            choices.append((*_allocation(found, replicator, wanted, most_jobs), level))
    if not choices:
        assert error is not None
        raise error
    _, counts, level = min(choices, key=lambda choice: choice[0])
    return _Plan(level, counts, spent)


def _allocation(
    found: list[Replication], replicator: Replicator, wanted: FloatArray, most_jobs: float
) -> tuple[float, FloatArray]:
    """Return the work for the wanted precision, and the runs of each class in each of the first replications.

    The number of runs of a class goes with the standard deviation of what it adds to the column where that matters
    most, over the root of the jobs that a run takes (Neyman's allocation).
    """
    totals, squares, jobs, runs = (
        sum(part) for part in zip(*((r.totals, r.squares, r.jobs, r.runs) for r in found), strict=True)
    )
    mean, variance, cost = _moments(totals, squares, jobs, runs, replicator.expected_jobs())
    value = (replicator.probabilities[:, None] * mean).sum(axis=0)
    share = quotient(replicator.probabilities[:, None] ** 2 * variance, (value * wanted) ** 2)
    share[~np.isfinite(share)] = 0.0
    wish = np.sqrt(share.max(axis=1) / cost)
    wish = np.maximum(wish, wish[wish > 0].min(initial=1.0))
    # Runs are in proportion to the wish; the column that needs most says how many.
    need = float((share / wish[:, None]).sum(axis=0).max()) * (_FACTOR / _AIM) ** 2
    work = need * float(wish @ cost)
    need *= min(1.0, 0.7 * most_jobs / work)
    return work, _whole(np.minimum(need * wish / FIRST_BATCH, _MOST_RUNS))


def _moments(
    totals: FloatArray, squares: FloatArray, jobs: IntArray, runs: IntArray, expected: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return mean and variance of a run, shape (classes, columns), and its jobs, by class.

    A class of very large jobs that the pilot has hardly seen is thought of as the one before, over a longer time: the
    number of jobs above a time grows with the jobs of the run, and so does its variance.
    """
    few = runs < _FEW
    count = np.maximum(runs, 1)
    mean = totals / count[:, None]
    variance = np.maximum(squares / count[:, None] - mean**2, 0)
    cost = np.maximum(jobs / count, 1.0)
    for k in np.flatnonzero(few).tolist():
        if k > 0:
            longer = expected[k] / expected[k - 1]
            mean[k], variance[k], cost[k] = longer * mean[k - 1], longer * variance[k - 1], longer * cost[k - 1]
    return mean, variance + (_SPREAD * mean) ** 2, cost


def _whole(counts: FloatArray) -> FloatArray:
    """Return the counts as whole numbers, but for those below one, which are probabilities."""
    return np.where(counts < 1, np.maximum(counts, _RAREST), np.ceil(counts))


# ---- replications --------------------------------------------------------------------------------


class _Runner:
    """Runs replications in a pool, in order, and says how far it is."""

    def __init__(self, pool: ThreadPoolExecutor) -> None:
        self._pool = pool

    def __call__(
        self, replicator: Replicator, seeds: list[np.random.SeedSequence], counts: FloatArray, advance: Advance
    ) -> Iterator[Replication]:
        waiting = [self._pool.submit(replicator.replicate, seed, counts) for seed in seeds]
        try:
            for future in waiting:
                replication = future.result()
                advance(int(replication.jobs.sum()) + replication.plain)
                yield replication
        finally:
            for future in waiting:
                future.cancel()


class _Kept:
    """What is finished: the plan under the number -1, and the replications; in a checkpoint, if there is one."""

    def __init__(self, checkpoint: Checkpoint | None) -> None:
        self._checkpoint, self._began = checkpoint, time.perf_counter()
        self._finished = {} if checkpoint is None else checkpoint.load()
        self._before = 0.0 if checkpoint is None else checkpoint.seconds

    @property
    def seconds(self) -> float:
        """Time that it took, before it was interrupted too."""
        return self._before + time.perf_counter() - self._began

    def plan(self) -> _Plan | None:
        """Return the plan, if there is one."""
        if -1 not in self._finished:
            return None
        arrays = self._finished[-1][0]
        return _Plan(int(arrays["level"]), arrays["counts"], int(arrays["spent"]))

    def put_plan(self, plan: _Plan) -> None:
        """Keep a plan."""
        self._finished[-1] = [{name: np.asarray(value) for name, value in plan._asdict().items()}]

    def replications(self, first: int) -> list[Replication]:
        """Return the replications from a number on, as far as they are there without a gap."""
        found: list[Replication] = []
        while first + len(found) in self._finished:
            arrays = self._finished[first + len(found)][0]
            values = {name: arrays[name] for name in Replication._fields}
            found.append(Replication(**values | {"plain": int(values["plain"])}))  # type: ignore[arg-type]
        return found

    def add(self, number: int, replication: Replication) -> None:
        """Keep a replication."""
        self._finished[number] = [{name: np.asarray(value) for name, value in replication._asdict().items()}]
        self.save()

    def save(self, *, last: bool = False) -> None:
        """Write what there is to the checkpoint."""
        if self._checkpoint is not None and self._finished:
            self._checkpoint.save(self._finished, time.perf_counter() - self._began, last=last)


def _jobs(found: list[Replication]) -> int:
    return sum(int(r.jobs.sum()) + r.plain for r in found)


def _relative_half_widths(estimate: Estimate) -> FloatArray:
    """Return those of all columns; infinite where one has nothing."""
    half = quotient(estimate.half_width(), estimate.value)
    return np.nan_to_num(half, nan=np.inf)
