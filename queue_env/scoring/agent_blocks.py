"""Replications of the largest-job decomposition for an agent: `Blocks`, with the environment's kernel.

The agent decides at every event, so many systems take one event a step side by side, and one call of the agent serves
them all. What is done for all of them is done on arrays; what happens to a few, one after the other.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from queue_env.config import EnvConfig
from queue_env.kernel.env_layout import RESPONSE
from queue_env.scenarios import Scenario
from queue_env.scoring.lanes import AgentPolicy, Lanes, Predictor, State, agent_policy, child
from queue_env.scoring.replications import Cuts, Replication, make_replication
from queue_env.scoring.strata import Runs, Strata, foreseen_time

__all__ = ["SEGMENT", "SNAPSHOTS", "WARMUP", "AgentBlocks", "AgentPolicy", "Predictor", "agent_policy"]

FloatArray: TypeAlias = NDArray[np.float64]
IntArray: TypeAlias = NDArray[np.int64]

LANES = 128  # systems side by side
WARMUP = 2000  # arrivals of each system before its first snapshot can be
SNAPSHOTS = 512  # of a replication
SEGMENT = 250 * SNAPSHOTS  # arrivals of all systems together over which they spread

_FIRST_CUT = 1.0  # of the last time, after which a block may be cut
_CHECK_SEED = 0
_ENDLESS = 2**62

# ---- where a run is ------------------------------------------------------------------------------
_IDLE = 0
_INJECTED = 1  # the job of the given size is about to arrive
_IN_BLOCK = 2
_DYING = 3  # in the block, but no more jobs are taken up
_AFTERWARDS = 4  # the block is over, some of its jobs are there


@dataclass(frozen=True)
class AgentBlocks:
    """Blocks of an agent on one scenario.

    The systems side by side begin with what is present in one long run under srpt, and from there go on under the
    agent. Under heavy tails what is left of srpt after the warm-up is the time that very large jobs stay, which does
    not differ much between policies that leave no server idle; for other agents a longer warm-up is wise.

    Attributes:
        scenario: the model.
        policy: the agent and its environment.
        strata: classes of the injected size.
        times: `(times,)` increasing, >= 0, at which the tail is wanted.
        level: b; a block ends when the number present falls from b+1 to b.
        warmup: arrivals of each of the systems side by side under the agent before its first snapshot can be.
        segment: arrivals of all of them together over which the snapshots of a replication spread.
        snapshots: of a replication.
        columns: `(times, columns)`: what is wanted are these linear functions of the tail at the times.
    """

    scenario: Scenario
    policy: AgentPolicy
    strata: Strata
    times: FloatArray
    level: int
    warmup: int
    segment: int
    snapshots: int
    columns: FloatArray

    @cached_property
    def config(self) -> EnvConfig:
        """The environment's arguments."""
        return self.policy.config(self.scenario)

    def replicate(self, seed: np.random.SeedSequence, counts: FloatArray) -> Replication:
        """Make one replication.

        Args:
            seed: of this replication; the result is a function of it and of the counts.
            counts: `(classes,)` expected runs of each class.

        Raises:
            ValueError: the agent has a memory, its actions are not allowed, more jobs are present than the capacity,
                or no block ends.
        """
        rng = np.random.default_rng(child(seed, 0))
        lanes = self._lanes(child(seed, 1))
        states = self._states(lanes, rng)
        plain = lanes.before + int(lanes.arrived.sum())
        tasks = self.strata.draw_runs(rng, counts, len(states))
        runs = _Runs(lanes, states, tasks, self.times, rng)
        runs.run()
        cuts = Cuts(runs.first_cut, runs.lasts, runs.lost)
        return make_replication(tasks, runs.found, self.columns, cuts, runs.jobs, counts, plain)

    @property
    def probabilities(self) -> FloatArray:
        """P[S in class], shape (classes,)."""
        return self.strata.probabilities

    @property
    def sizes(self) -> FloatArray:
        """The median of each class, shape (classes,)."""
        return self.strata.medians

    def expected_jobs(self) -> FloatArray:
        """A guess of the jobs that a run of each class takes, shape (classes,)."""
        return self.strata.expected_jobs(self.scenario, _FIRST_CUT * float(self.times[-1]))

    def foreseen(self, pace: FloatArray) -> FloatArray:
        """What a run that may be cut adds at a pace, shape (classes, columns); NaN for classes of shorter runs."""
        first_cut = _FIRST_CUT * float(self.times[-1])
        return self.strata.foreseen(self.scenario, first_cut, self.columns.sum(axis=0), pace)

    def check(self) -> None:
        """Look at one plain run whether blocks end, before any work is put into replications.

        Raises:
            ValueError: as `replicate`.
        """
        self._states(self._lanes(np.random.SeedSequence(_CHECK_SEED)), np.random.default_rng(_CHECK_SEED))

    def _lanes(self, seed: np.random.SeedSequence) -> Lanes:
        return Lanes(self.policy, self.config, self.level, seed, min(LANES, self.snapshots))

    def _states(self, lanes: Lanes, rng: np.random.Generator) -> list[State]:
        """Return states just after an arrival, equally many of each lane."""
        count, spacing = len(lanes.time), max(self.segment // self.snapshots, 1)
        each = -(-self.snapshots // count)
        places = self.warmup + spacing * np.arange(each) + rng.integers(spacing, size=(count, each))
        places = np.column_stack([places, np.full(count, _ENDLESS)])
        taken, everyone, states = np.zeros(count, np.int64), np.arange(count), list[State]()
        while len(states) < count * each:
            lanes.step()
            for b in np.flatnonzero(lanes.came & (lanes.arrived >= places[everyone, taken])).tolist():
                states.append(lanes.state(b))
                taken[b] += 1
        if lanes.ended == 0:
            raise ValueError(
                f"agent {self.policy.label}: the number present has not once fallen from {self.level + 1} to "
                f"{self.level} in {int(lanes.arrived.min())} arrivals; allowed: an agent under which it does, or a "
                "higher level"
            )
        return states


class _Runs:
    """The runs of one replication: each counts jobs of the block in which the injected job is the largest.

    Attributes:
        found: `(tasks, times + 1)` counted jobs by how many times their response time is above, weighted.
        jobs: `(tasks,)` arrivals.
        lasts: `(tasks,)` how long blocks are foreseen to last.
        lost: `(tasks,)` foreseen time that cuts have taken off, less what runs have won that went on; weighted.
    """

    def __init__(
        self, lanes: Lanes, states: list[State], tasks: Runs, times: FloatArray, rng: np.random.Generator
    ) -> None:
        self.lanes, self.states, self.tasks, self.times, self.rng = lanes, states, tasks, times, rng
        self.found = np.zeros((len(tasks.sizes), len(times) + 1))
        self.jobs = np.zeros(len(tasks.sizes), np.int64)
        self.first_cut = _FIRST_CUT * float(times[-1])
        self.lasts, self.lost = foreseen_time(lanes.config.scenario, tasks.sizes), np.zeros(len(tasks.sizes))
        # The longest come first, so that in the end no lane has much to do while others have nothing.
        self.waiting = np.argsort(tasks.sizes, kind="stable").tolist()
        count = len(lanes.time)
        self.task, self.stage, self.begun, self.pending = np.zeros((4, count), np.int64)
        # Counted are the jobs that have arrived between `low` and `high`; the block may be cut at `cut`.
        self.low, self.high, self.injected, self.cut, self.horizon = np.full((5, count), np.inf)

    def run(self) -> None:
        """Make all runs."""
        lanes = self.lanes
        self._begin(range(len(lanes.time)))
        while lanes.busy.any():
            lanes.step()
            self._count_departures()
            for b in np.flatnonzero(lanes.time >= self.cut).tolist():
                self._flip_coins(b)
            for b in lanes.grown[self._watched(lanes.grown)].tolist():
                # The younger ones count for the larger job.
                self._end(b, self.times[-1])
            for b in lanes.over[self._watched(lanes.over)].tolist():
                self._take_no_more(b, lanes.time[b])
                self.stage[b] = _AFTERWARDS
            last = (self.pending == 0) | (lanes.time >= self.horizon)
            for b in np.flatnonzero(last & (self.stage >= _DYING)).tolist():
                self._end(b, 0.0)
            self._watch()
            self._begin(np.flatnonzero(self.stage == _IDLE).tolist())

    def _begin(self, chosen: Iterable[int]) -> None:
        """Give tasks to lanes that have none."""
        states, sizes = {}, {}
        for b in chosen:
            if not self.waiting:
                self.lanes.busy[b] = False
                continue
            task = self.task[b] = self.waiting.pop()
            states[b], sizes[b] = self.states[self.tasks.states[task]], float(self.tasks.sizes[task])
        if states:
            self.lanes.inject(states, sizes)
            begun = list(states)
            self.stage[begun], self.begun[begun] = _INJECTED, self.lanes.arrived[begun]

    def _watch(self) -> None:
        """Go on where the injected job has arrived; without it if it is not the largest of its block."""
        lanes = self.lanes
        here = np.flatnonzero(lanes.came & (self.stage == _INJECTED))
        largest = lanes.which[here] == lanes.arrived[here] - 1
        for b in here[~largest].tolist():
            self._end(b, np.inf)
        here = here[largest]
        self.stage[here], self.pending[here] = _IN_BLOCK, _ENDLESS
        # Who has been there for longer than the last time counts for an earlier largest job.
        self.low[here] = np.maximum(lanes.began[here], lanes.time[here] - self.times[-1])
        self.high[here], self.horizon[here] = np.inf, np.inf
        self.injected[here], self.cut[here] = lanes.time[here], lanes.time[here] + self.first_cut

    def _watched(self, chosen: IntArray) -> NDArray[np.bool_]:
        stage = self.stage[chosen]
        return np.asarray((stage == _IN_BLOCK) | (stage == _DYING))

    def _count_departures(self) -> None:
        lanes = self.lanes
        left = np.flatnonzero(~lanes.came & (self.stage >= _IN_BLOCK))
        response = lanes.batch.memory.outcomes[left, RESPONSE]
        arrival = lanes.time[left] - response
        counted = (arrival > self.low[left]) & (arrival < self.high[left])
        left, response, arrival = left[counted], response[counted], arrival[counted]
        self.found[self.task[left], np.searchsorted(self.times, response)] += self._weights(left, arrival)
        self.pending[left] -= 1

    def _weights(self, lanes: IntArray | int, arrival: FloatArray) -> FloatArray:
        """Return 2^i for what has arrived after i chances of a cut."""
        passed = np.maximum(arrival - self.injected[lanes], 0.0) / self.first_cut
        return np.asarray(np.ldexp(1.0, np.maximum(np.frexp(passed)[1], 0)))

    def _counted(self, b: int) -> FloatArray:
        """Return when the counted jobs that are present have arrived."""
        arrivals = self.lanes.arrivals(b)
        return np.asarray(arrivals[(arrivals > self.low[b]) & (arrivals < self.high[b])])

    def _flip_coins(self, b: int) -> None:
        """Cut the run if the coin says so; else later jobs count twice as much."""
        task = self.task[b]
        while self.lanes.time[b] >= self.cut[b]:
            passed = self.cut[b] - self.injected[b]
            left = passed / self.first_cut * max(self.lasts[task] - passed, 0.0)
            if self.rng.random() < 0.5:
                self.lost[task] += left
                self._take_no_more(b, self.cut[b])
                self.stage[b] = _DYING
                return
            self.lost[task] -= left
            self.cut[b] += passed

    def _take_no_more(self, b: int, time: float) -> None:
        """Count no job that arrives after some time, and end when all that are present are older than the last mark."""
        self.high[b], self.cut[b] = min(self.high[b], time), np.inf
        counted = self._counted(b)
        self.pending[b] = len(counted)
        self.horizon[b] = counted.max(initial=-np.inf) + self.times[-1]

    def _end(self, b: int, least_age: float) -> None:
        """End a run; the counted jobs present of at least some age are above all times."""
        if least_age < np.inf:
            arrivals = self._counted(b)
            arrivals = arrivals[self.lanes.time[b] - arrivals >= least_age]
            self.found[self.task[b], -1] += self._weights(b, arrivals).sum()
        self.jobs[self.task[b]] = self.lanes.arrived[b] - self.begun[b]
        self.stage[b], self.cut[b] = _IDLE, np.inf
