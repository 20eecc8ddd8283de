"""What is made small: the tail score of policies from few jobs, the same random numbers for every policy.

The score is estimated by the largest-job decomposition, as by `queue_env.score`; but how many runs of each size class
there are is fixed beforehand, and each run has random numbers of its own. So two policies meet the same jobs in every
run, and the difference of their scores is known far better than either.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from queue_env.distributions.checks import refuse
from queue_env.plan import make_plan
from queue_env.reward import tail_cost
from queue_env.scenarios import Scenario
from queue_env.scoring.blocks import Blocks, Replication, _Pools, make_replication
from queue_env.scoring.pilot import plan_runs
from queue_env.scoring.score import TAIL_RANGE, score_grid
from queue_env.scoring.strata import Strata, check_decomposable, make_strata

__all__ = ["UNSTABLE", "Objective", "make_objective"]

FloatArray: TypeAlias = NDArray[np.float64]
Seed: TypeAlias = np.random.SeedSequence

UNSTABLE = 1e9  # in place of a score
REFERENCE = "backlog-split"  # under which the pilot finds how many runs of each class are worth their while
_LEVEL = 2  # times the servers, the level of the blocks
_SNAPSHOTS, _APART, _WARMUP = 384, 400, 30_000  # of a replication, and arrivals between them and before them
_WIDTH, _PILOT_JOBS = 0.05, 2e8  # that the pilot plans for
_JOBS = 400_000.0  # of the runs of a replication, expected
_OVERHEAD = 1000.0  # jobs that take as long as a run does besides its jobs
_MOST = 0.05  # of the jobs, for one class; of very large sizes the pilot, which has hardly seen any, wants too many
_FIRST_POOL, _POOL, _COINS = 64, 32_768, 128  # random numbers of a kind that are drawn at once


class CoupledBlocks(Blocks):
    """Blocks whose runs have random numbers of their own each, so that all policies meet the same jobs in them."""

    def replicate(self, seed: Seed, counts: FloatArray) -> Replication:
        """Make one replication; the arguments are those of `Blocks.replicate`."""
        plain_seed, run_seed, number_seed = copy.deepcopy(seed).spawn(3)
        rng = np.random.default_rng(run_seed)
        spacing = self.segment // self.snapshots
        places = self.warmup + spacing * np.arange(self.snapshots) + rng.integers(spacing, size=self.snapshots)
        runs = self.strata.draw_runs(rng, counts, self.snapshots)
        tasks, seeds = self._tasks(runs.sizes), number_seed.spawn(len(runs.sizes))
        above = np.zeros((len(tasks), len(self.times)))
        used = np.unique(runs.states)
        for i, memory in zip(used, self._snapshots(self.scenario.stream(plain_seed), places[used]), strict=True):
            mine = (runs.states == i) & (runs.sizes > memory.system["block_largest"][0])
            for run in np.flatnonzero(mine).tolist():
                tasks[[run]], above[[run]] = self._run(memory, tasks[[run]], _OwnPools(self.scenario, seeds[run]))
        return make_replication(runs.classes, above @ self.columns, tasks["jobs"], counts, self.warmup + self.segment)


class _OwnPools(_Pools):
    """Random numbers for one run, drawn as it needs them: few at first, for most runs are short."""

    def __init__(self, model: Scenario, seed: Seed) -> None:
        self._length = _FIRST_POOL
        super().__init__(model, np.random.default_rng(seed))

    def draw(self) -> None:
        """Draw new numbers."""
        self.gaps = self._arrivals.gaps(self._rng, self._length)
        self.sizes = self._law.sample(self._rng, self._length)
        self.coins = self._rng.random(max(self._length, _COINS))
        self._places = {"gap_at": 0, "size_at": 0, "coin_at": 0}
        self._length = min(8 * self._length, _POOL)


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


def make_objective(
    model: Scenario, seed: Seed, pool: ThreadPoolExecutor, counts: FloatArray | None = None
) -> Objective:
    """Return the objective for a scenario.

    Args:
        model: the scenario.
        seed: of the pilot, which finds under `REFERENCE` how many runs of each class are worth their while.
        pool: on which it runs.
        counts: `(classes,)` what it has found, if that is known.

    Raises:
        ValueError: there is no decomposition for the scenario, or its sizes have a light tail.
    """
    check_decomposable(model, "train.es")
    cost = tail_cost(model, TAIL_RANGE)
    if cost.t1 < TAIL_RANGE[1] * model.sizes.mean:
        refuse("train.es", "sizes of the scenario", "of a heavy tail", model.sizes.spec())
    grid = score_grid(model, cost)
    strata = make_strata(model.sizes, model.c * float(grid.times[-1]))
    made = Objective(model, strata, np.concatenate([[0.0], grid.times]), grid.columns[:, 1:2], np.ones(len(strata)))
    return replace(made, counts=_worth_their_while(made, seed, pool) if counts is None else counts)


def _worth_their_while(objective: Objective, seed: Seed, pool: ThreadPoolExecutor) -> FloatArray:
    """Return the runs of each class in a replication, shape (classes,)."""
    blocks = objective.blocks(REFERENCE)
    plan = plan_runs(
        lambda _: blocks,
        [blocks.level],
        np.array([_WIDTH]),
        seed,
        _PILOT_JOBS,
        lambda made, seeds, counts: pool.map(lambda one: made.replicate(one, counts), seeds),
    )
    jobs = blocks.expected_jobs()
    counts = plan.counts * np.sqrt(jobs / (jobs + _OVERHEAD))
    for _ in range(2):  # before the largest are cut, and after
        counts *= _JOBS / float(counts @ jobs)
        counts = np.minimum(counts, _MOST * _JOBS / jobs)
    return np.asarray(counts)
