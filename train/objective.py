"""What is made small: the tail score of policies from few jobs, the same random numbers for every policy.

The score is estimated by the largest-job decomposition, as by `queue_env.score`; but how many runs of each size class
there are is fixed beforehand, and each run has random numbers of its own. So two policies meet the same jobs in every
run, and the difference of their scores is known far better than either.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from queue_env.distributions.checks import refuse
from queue_env.plan import make_plan
from queue_env.reward import TailCost, tail_cost
from queue_env.scenarios import Scenario
from queue_env.scoring.blocks import Blocks, Pools
from queue_env.scoring.score import TAIL_RANGE, score_grid
from queue_env.scoring.strata import Strata, check_decomposable, make_strata

__all__ = ["UNSTABLE", "Objective", "make_objective"]

FloatArray: TypeAlias = NDArray[np.float64]
Seed: TypeAlias = np.random.SeedSequence

UNSTABLE = 1e9  # in place of a score
_LEVEL = 2  # times the servers, the level of the blocks
_SNAPSHOTS, _APART, _WARMUP = 384, 400, 30_000  # of a replication, and arrivals between them and before them
_WORK = 4e5  # of the runs of a replication, in jobs
_FIRST_CUT = 4.0  # of the last time, after which a block may be cut; the shipped policies are of searches with it
_OVERHEAD = 30.0  # jobs that take as long as a run does besides its jobs
_LEAST_SHARE = 1e-3  # of the score, for a class of less than the mean size, or than c·t at the first time
_LARGEST = 25.0  # times c·t at the last time: jobs of more than that are so rare that they add next to nothing
_POOL = 2**19  # random numbers of a kind that the runs of a replication share
_CURVE = 100.0  # mean service times, up to which the tail itself is of interest


class Cycle(Pools):
    """Random numbers among which a run can begin anywhere; after the last come the first again."""

    def more(self) -> None:
        """Begin with the numbers again."""
        self.places = dict.fromkeys(self.places, 0)


class CoupledBlocks(Blocks):
    """Blocks whose runs have random numbers of their own each, so that all policies meet the same jobs in them."""

    def _pools(self, rng: np.random.Generator, tasks: NDArray[np.void]) -> Pools:
        tasks["place"] = rng.integers(_POOL, size=len(tasks))
        return Cycle(self.scenario, rng, _POOL)


@dataclass(frozen=True)
class Objective:
    """The tail score on a scenario by replications of a fixed design.

    Attributes:
        model: the scenario.
        strata: classes of the injected size.
        times: `(times,)` at which the tail is looked at.
        columns: `(times, 1 + curve)` the score, and the normalised tail at the first times, as functions of the tail.
        counts: `(classes,)` expected runs of each class in a replication.
    """

    model: Scenario
    strata: Strata = field(repr=False)
    times: FloatArray = field(repr=False)
    columns: FloatArray = field(repr=False)
    counts: FloatArray = field(repr=False)

    def blocks(self, policy: Any) -> CoupledBlocks:
        """Return the blocks of a policy on this scenario."""
        setting = make_plan(self.model, [policy]).settings[0]
        segment = _SNAPSHOTS * _APART
        level = _LEVEL * self.model.servers
        lengths = (_WARMUP, segment, _SNAPSHOTS)
        return CoupledBlocks(
            self.model, setting, self.strata, self.times, level, *lengths, self.columns, first_cut=_FIRST_CUT
        )

    def measure(self, policy: Any, seed: Seed) -> FloatArray:
        """Return the score, and the normalised tail at times up to 100 mean service times, by one replication.

        Returns:
            Shape (1 + curve,); `UNSTABLE` where blocks do not end.
        """
        try:
            found = self.blocks(policy).replicate(seed, self.counts)
        except ValueError:
            return np.full(self.columns.shape[1], UNSTABLE)
        return np.asarray(self.strata.probabilities / self.counts @ found.totals)

    def measures(
        self, policies: Sequence[Any], seeds: Sequence[Seed], pool: ThreadPoolExecutor, advance: Callable[[], None]
    ) -> FloatArray:
        """Return what `measure` finds for policies by a replication for each seed, shape (policies, seeds, 1 + curve).

        Args:
            policies: as for `simulate`.
            seeds: of the replications.
            pool: on which they run.
            advance: called after each.
        """
        waiting = [pool.submit(self.measure, policy, seed) for policy in policies for seed in seeds]
        values = []
        try:
            for future in waiting:
                values.append(future.result())
                advance()
        finally:
            for future in waiting:
                future.cancel()
        return np.array(values).reshape(len(policies), len(seeds), -1)


def make_objective(model: Scenario, tail_range: tuple[float, float] = TAIL_RANGE) -> Objective:
    """Return the objective for a scenario.

    Args:
        model: the scenario.
        tail_range: of the score, in mean service times.

    Raises:
        ValueError: there is no decomposition for the scenario, or its sizes have a light tail.
    """
    check_decomposable(model, "training")
    cost = tail_cost(model, tail_range)
    if cost.t1 < tail_range[1] * model.sizes.mean:
        refuse("training", "sizes of the scenario", "of a heavy tail", model.sizes.spec())
    grid = score_grid(model, cost)
    last = model.c * float(grid.times[-1])
    strata = _without_the_largest(make_strata(model.sizes, last), _LARGEST * last)
    times = np.concatenate([[0.0], grid.times])
    curve = 2 + np.flatnonzero(grid.times <= _CURVE * model.sizes.mean * (1 + 1e-9))
    columns = grid.columns[:, [1, *curve]]
    return Objective(model, strata, times, columns, _worth_their_while(model, cost, strata, times))


def _without_the_largest(strata: Strata, size: float) -> Strata:
    """Return the classes up to a size."""
    return Strata(strata.sizes, strata.tails[: 1 + np.count_nonzero(strata.medians <= size)])


def _worth_their_while(model: Scenario, cost: TailCost, strata: Strata, times: FloatArray) -> FloatArray:
    """Return the runs of each class in a replication, shape (classes,).

    What a class adds to the score is about its probability times the cost of a job that has its server to itself after
    one of mean size. Runs differ about as much, for what they add, in one class as in another; for this the variance
    is least, at some work, if the runs of a class are in proportion to what it adds over the root of a run's work.
    """
    work = strata.expected_jobs(model, float(times[-1])) + _OVERHEAD
    share = strata.probabilities * cost.of((strata.medians + model.sizes.mean) / model.c)
    least = np.where(strata.medians < max(model.sizes.mean, model.c * cost.t0), _LEAST_SHARE, 0.0)
    share = np.maximum(share / share.sum(), least)
    return np.asarray(_WORK * share / np.sqrt(work) / (share @ np.sqrt(work)))
