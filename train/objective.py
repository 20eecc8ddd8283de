"""What is made small: the tail score of policies from few jobs, the same random numbers for every policy.

The score is estimated by the largest-job decomposition, as by `queue_env.score`; but how many runs of each size class
there are is fixed beforehand, and each run has random numbers of its own. So two policies meet the same jobs in every
run, and the difference of their scores is known far better than either.
"""

from __future__ import annotations

import copy
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
from queue_env.scoring.blocks import Blocks, Pools, Replication, make_replication
from queue_env.scoring.score import TAIL_RANGE, score_grid
from queue_env.scoring.strata import Strata, check_decomposable, make_strata

__all__ = ["UNSTABLE", "Objective", "make_objective"]

FloatArray: TypeAlias = NDArray[np.float64]
Seed: TypeAlias = np.random.SeedSequence

UNSTABLE = 1e9  # in place of a score
_LEVEL = 2  # times the servers, the level of the blocks
_SNAPSHOTS, _APART, _WARMUP = 384, 400, 30_000  # of a replication, and arrivals between them and before them
_WORK = 1e6  # of the runs of a replication, in jobs
_OVERHEAD = 1000.0  # jobs that take as long as a run does besides its jobs
_MOST = 0.05  # of the work, for one class
_FIRST_POOL = 64  # random numbers of a kind for a run at first: most runs are short


class CoupledBlocks(Blocks):
    """Blocks whose runs have random numbers of their own each, so that all policies meet the same jobs in them."""

    def replicate(self, seed: Seed, counts: FloatArray) -> Replication:
        """Make one replication; the arguments are those of `Blocks.replicate`."""
        plain_seed, run_seed, number_seed = copy.deepcopy(seed).spawn(3)
        rng = np.random.default_rng(run_seed)
        places = self._draw_places(rng)
        runs = self.strata.draw_runs(rng, counts, self.snapshots)
        tasks, seeds = self._tasks(runs.sizes), number_seed.spawn(len(runs.sizes))
        above = np.zeros((len(tasks), len(self.times)))
        used = np.unique(runs.states)
        for i, memory in zip(used, self._snapshots(self.scenario.stream(plain_seed), places[used]), strict=True):
            mine = (runs.states == i) & (runs.sizes > memory.system["block_largest"][0])
            for run in np.flatnonzero(mine).tolist():
                pools = Pools(self.scenario, np.random.default_rng(seeds[run]), _FIRST_POOL)
                tasks[[run]], above[[run]] = self._run(memory, tasks[[run]], pools)
        return make_replication(runs, above @ self.columns, tasks["jobs"], counts, self.warmup + self.segment)


@dataclass(frozen=True)
class Objective:
    """The tail score on a scenario, over 1 to 10⁴ mean service times, by replications of a fixed design.

    Attributes:
        model: the scenario.
        strata: classes of the injected size.
        times: `(times,)` at which the tail is looked at.
        columns: `(times, 1)` the score as a function of the tail.
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
        return CoupledBlocks(
            self.model, setting, self.strata, self.times, level, _WARMUP, segment, _SNAPSHOTS, self.columns
        )

    def estimate(self, policy: Any, seed: Seed) -> float:
        """Return the score by one replication; `UNSTABLE` where blocks do not end."""
        blocks = self.blocks(policy)
        try:
            found = blocks.replicate(seed, self.counts)
        except ValueError:
            return UNSTABLE
        return float(blocks.probabilities @ (found.totals[:, 0] / self.counts))

    def estimates(
        self, policies: Sequence[Any], seeds: Sequence[Seed], pool: ThreadPoolExecutor, advance: Callable[[], None]
    ) -> FloatArray:
        """Return the scores of policies by a replication for each seed, shape (policies, seeds).

        Args:
            policies: as for `simulate`.
            seeds: of the replications.
            pool: on which they run.
            advance: called after each.
        """
        waiting = [pool.submit(self.estimate, policy, seed) for policy in policies for seed in seeds]
        values = []
        try:
            for future in waiting:
                values.append(future.result())
                advance()
        finally:
            for future in waiting:
                future.cancel()
        return np.array(values).reshape(len(policies), len(seeds))


def make_objective(model: Scenario) -> Objective:
    """Return the objective for a scenario.

    Raises:
        ValueError: there is no decomposition for the scenario, or its sizes have a light tail.
    """
    check_decomposable(model, "train.es")
    cost = tail_cost(model, TAIL_RANGE)
    if cost.t1 < TAIL_RANGE[1] * model.sizes.mean:
        refuse("train.es", "sizes of the scenario", "of a heavy tail", model.sizes.spec())
    grid = score_grid(model, cost)
    strata = make_strata(model.sizes, model.c * float(grid.times[-1]))
    times = np.concatenate([[0.0], grid.times])
    return Objective(model, strata, times, grid.columns[:, 1:2], _worth_their_while(model, cost, strata, times))


def _worth_their_while(model: Scenario, cost: TailCost, strata: Strata, times: FloatArray) -> FloatArray:
    """Return the runs of each class in a replication, shape (classes,).

    What a class adds to the score is about its probability times the cost of a job that has its server to itself after
    one of mean size. Runs of larger sizes differ less among each other, as they are longer, so each class gets work in
    proportion to what it adds.
    """
    work = strata.expected_jobs(model, float(times[-1])) + _OVERHEAD
    share = strata.probabilities * cost.of((strata.medians + model.sizes.mean) / model.c)
    share = np.minimum(share / share.sum(), _MOST)
    return np.asarray(_WORK * share / share.sum() / work)
