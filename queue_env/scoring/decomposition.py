"""The largest-job decomposition from pilot to intervals: how many runs of each class, and when it is enough."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Executor
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from queue_env.checkpoint import Checkpoint
from queue_env.progress import Advance, job_progress
from queue_env.scoring import pilot
from queue_env.scoring.executors import Cluster, open_pool
from queue_env.scoring.pilot import Allocation, Known, Plan, Replicator, Seen, allocate_runs, jobs_of, plan_runs
from queue_env.scoring.replications import Replication
from queue_env.tail import Estimate, jackknife, quotient

__all__ = ["Decomposition", "decompose"]

FloatArray: TypeAlias = NDArray[np.float64]
IntArray: TypeAlias = NDArray[np.int64]

_EARLY_BATCHES, LATER_BATCH = (4, 8), 4  # replications, after which the later ones are planned anew
_USABLE = 0.9  # of the jobs that are left, for what is planned


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


def _sums(found: list[Replication], known: list[Known], replicator: Replicator) -> FloatArray:
    """Return the estimates of replications, shape (replications, columns).

    What a run of a class adds is known from those before; only how it differs from that is estimated. So it hardly
    matters which of the classes that have less than one run in a replication happen to have it, nor whether a long run
    happens to be cut.

    Args:
        found: the replications.
        known: what was taken as known before each was made; after an interrupt there is more of it than replications.
        replicator: that has made them.
    """
    unforeseen = []
    for r, before in zip(found, known, strict=False):
        totals = r.totals + r.lost[:, None] * before.pace
        unforeseen.append(before.mean + (totals - r.runs[:, None] * before.mean) / r.counts[:, None])
    return np.asarray(replicator.probabilities @ np.array(unforeseen))


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
    ray: Cluster = None,
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
        ray: a cluster to run them on in place of threads.
        progress: whether to show a bar; only on a terminal, if not given.
        checkpoint: keeps what is finished.
        label: of the policy, for the bar.

    Raises:
        KeyboardInterrupt: interrupted before half of the first batch was there.
    """
    kept = _Kept(checkpoint)
    pilot_seed, main_seed = np.random.SeedSequence(seed).spawn(2)
    with open_pool(threads, ray) as pool:
        run = _Runner(pool)
        plan = kept.plan()
        if plan is None:
            with job_progress(None, f"pilot for {label}", progress) as advance:
                plan = plan_runs(make, levels, wanted, pilot_seed, most_jobs, partial(run, advance=advance))
            kept.put_plan(plan)
        replicator = make(plan.level)
        found: list[Replication] = []
        known: list[Known] = []
        reached, affordable = False, True
        with job_progress(None, f"tail of {label}", progress) as advance:
            try:
                while not reached and affordable:
                    count = _next_batch(len(found))
                    runs, expected = _next_runs(plan, found, count, replicator, wanted, most_jobs)
                    advance(0, jobs_of(found) + expected)
                    known += [runs.known] * count
                    found += _batch(run, replicator, kept, len(found), main_seed.spawn(count), runs.counts, advance)
                    if len(found) >= pilot.FIRST_BATCH:
                        half = _relative_half_widths(_controlled(_sums(found, known, replicator)))
                        reached = bool(np.all(half <= wanted))
                        affordable = _affordable(plan, found, replicator, wanted, most_jobs)
            except KeyboardInterrupt:
                found = kept.replications(0)
                if len(found) < pilot.FIRST_BATCH // 2:
                    raise
            finally:
                kept.save(last=True)
    jobs = plan.spent + jobs_of(found)
    return Decomposition(_sums(found, known, replicator), jobs, plan.level, kept.seconds, reached)


def _next_batch(made: int) -> int:
    """Return how many replications to make before the next are planned."""
    if made >= pilot.FIRST_BATCH:
        return LATER_BATCH
    return min(_EARLY_BATCHES[min(made, 1)], pilot.FIRST_BATCH - made)


def _next_runs(
    plan: Plan, found: list[Replication], batch: int, replicator: Replicator, wanted: FloatArray, most_jobs: float
) -> tuple[Allocation, float]:
    """Return what is foreseen for the next replications, and the jobs that are still to come.

    The replications so far say what the runs of a class add, and so every one is planned for the same variance. Each is
    unbiased whatever those before it have found, so all have the same weight.
    """
    seen, rest = plan.seen.more(found), max(pilot.PLANNED - len(found), batch)
    most = _USABLE * (most_jobs - plan.spent - jobs_of(found)) / rest - plan.plain
    # Where there is little left, it is for fewer replications, but each has runs worth its plain run.
    runs = allocate_runs(seen, replicator, wanted, max(most, plan.plain))
    return runs, rest * (runs.work + plan.plain)


def _affordable(
    plan: Plan, found: list[Replication], replicator: Replicator, wanted: FloatArray, most_jobs: float
) -> bool:
    """Return whether there are jobs left for further replications: for full ones, after those that were planned."""
    left = most_jobs - plan.spent - jobs_of(found)
    most = left / (pilot.PLANNED - len(found)) if len(found) < pilot.PLANNED else math.inf
    runs = allocate_runs(plan.seen.more(found), replicator, wanted, max(most, plan.plain))
    return LATER_BATCH * (runs.work + plan.plain) <= left


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


# ---- replications --------------------------------------------------------------------------------


class _Runner:
    """Runs replications in a pool, in order, and says how far it is."""

    def __init__(self, pool: Executor) -> None:
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

    def plan(self) -> Plan | None:
        """Return the plan, if there is one."""
        if -1 not in self._finished:
            return None
        arrays = self._finished[-1][0]
        level, spent, plain = (int(arrays[name]) for name in ("level", "spent", "plain"))
        return Plan(level, spent, plain, Seen(*(arrays[name] for name in Seen._fields)))

    def put_plan(self, plan: Plan) -> None:
        """Keep a plan."""
        numbers = {name: np.asarray(getattr(plan, name)) for name in ("level", "spent", "plain")}
        self._finished[-1] = [numbers | plan.seen._asdict()]

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


def _relative_half_widths(estimate: Estimate) -> FloatArray:
    """Return those of all columns; infinite where one has nothing."""
    half = quotient(estimate.half_width(), estimate.value)
    return np.nan_to_num(half, nan=np.inf)
