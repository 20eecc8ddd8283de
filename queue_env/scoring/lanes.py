"""Systems under an agent, side by side, one event a step: what the runs of an agent's blocks are made of."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, NoReturn, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from queue_env.batch import BatchOfSystems
from queue_env.config import EnvConfig
from queue_env.distributions.checks import refuse
from queue_env.env import QueueEnv
from queue_env.kernel.env_layout import BY_ARRIVAL, COMPLETIONS, DISABLED
from queue_env.rules import parse_policy
from queue_env.scenarios import Scenario
from queue_env.settings import set_up
from queue_env.snapshot import Snapshot
from queue_env.starts import InitialJob, Start
from queue_env.system import System

__all__ = ["AgentPolicy", "FirstState", "Lanes", "Predictor", "State", "agent_policy", "child", "first_states"]

FloatArray: TypeAlias = NDArray[np.float64]
IntArray: TypeAlias = NDArray[np.int64]

# The lanes begin with what is present, at times that far apart, in one run of this policy. Under heavy tails a system
# that begins empty takes far too long to meet the blocks of very large jobs in which it should be so often.
_FIRST_POLICY = "srpt"  # stable whenever the load is below 1
_SETTLED = 200_000  # arrivals before the first of them
_APART = 8192  # arrivals
_ENDLESS = 2**62
# What the agent does not see; the cost is the one that takes the least time.
_PRESCRIBED: dict[str, Any] = {
    "episode": "horizon",
    "horizon": 1e300,
    "big_sizes": None,
    "reward": "mean",
    "allocation_in_info": False,
    "render_mode": None,
}


class Predictor(Protocol):
    """An agent: a model of Stable-Baselines3, or what has its `predict`."""

    def predict(
        self, observation: Any, state: Any = None, episode_start: Any = None, deterministic: bool = True
    ) -> tuple[Any, Any]:
        """Return the actions for a batch of observations, and a state, which must be None."""
        ...


@dataclass(frozen=True)
class AgentPolicy:
    """An agent, and the environment that it acts in.

    Attributes:
        agent: whose `predict` gives the actions for observations.
        label: its name.
        arguments: those of `QueueEnv` but for the scenario. Which reward and which episodes does not matter.
    """

    agent: Predictor
    label: str
    arguments: Mapping[str, Any] = field(default_factory=dict)

    def config(self, model: Scenario) -> EnvConfig:
        """Return those arguments, checked.

        Raises:
            ValueError: an argument is not allowed, or the agent does not decide at every event.
            TypeError: there is no such argument.
        """
        return QueueEnv(**self.environment(model)).config

    def environment(self, model: Scenario, *, records: bool = False) -> dict[str, Any]:
        """Return the arguments of an environment of this scenario with endless episodes.

        Args:
            model: the scenario.
            records: whether it keeps records.

        Raises:
            ValueError: an argument is not allowed, or the agent does not decide at every event.
        """
        for name in ("scenario", "overrides"):
            if self.arguments.get(name) is not None:
                refuse(self.label, name, "left out, for it is given beside the agent", self.arguments[name])
        if self.arguments.get("decision_interval") is not None:
            interval = self.arguments["decision_interval"]
            refuse(self.label, "decision_interval", "None: every event is a decision", interval)
        return {**self.arguments, **_PRESCRIBED, "scenario": model.to_dict(), "records": records}


def agent_policy(agent: Predictor, *, label: str, **env_arguments: Any) -> AgentPolicy:
    """Return an agent as a policy that can be scored.

    Args:
        agent: a model of Stable-Baselines3, or anything with its `predict` for batches of observations; without memory.
        label: its name.
        **env_arguments: those of the `QueueEnv` that it acts in, but for the scenario.

    Raises:
        ValueError: the agent has no `predict`.
    """
    if not callable(getattr(agent, "predict", None)):
        refuse("agent_policy", "agent", "with a method predict(observation, ...)", agent)
    return AgentPolicy(agent, label, dict(env_arguments))


class State(NamedTuple):
    """Where runs start: a snapshot, the observation that belongs to it, and the block at that time, as in `Lanes`."""

    snapshot: Snapshot
    observation: NDArray[Any]
    began: float
    largest: float
    which: int


class FirstState(NamedTuple):
    """What is present in a system just after an arrival, and the block, as in `Lanes` with that arrival at time 0."""

    jobs: tuple[InitialJob, ...]
    began: float
    largest: float
    which: int


class Lanes:
    """Systems under an agent that take one event a step, and the block that each is in.

    Attributes, arrays of one entry a lane but for the last four:
        busy: whether what happens in it matters.
        time: absolute [time].
        arrived, number: jobs so far and jobs present.
        came: whether the last event was an arrival; else a job has left.
        began: when the last block ended; what came later is of this one.
        largest, which: size of the block's largest job, and its number; size 0 before its first job.
        grown, over: lanes whose block has a new largest job by the last event, or has been ended by it.
        ended: blocks that have.
        before: arrivals of the run that the lanes have begun from.
    """

    def __init__(
        self, policy: AgentPolicy, config: EnvConfig, level: int, seed: np.random.SeedSequence, count: int
    ) -> None:
        self.policy, self.config, self.level = policy, config, level
        self.batch = BatchOfSystems(config, count, DISABLED)
        self.busy = np.ones(count, np.bool_)
        self.arrived, self.which = np.zeros((2, count), np.int64)
        self.began, self.largest = np.zeros((2, count))
        for b, settled in enumerate(first_states(config.scenario, level, child(seed, count), count)):
            if len(settled.jobs) > config.capacity:
                self._refuse_number()
            self.batch.reset([b], {b: child(seed, b)}, Start(jobs=settled.jobs))
            self.arrived[b] = len(settled.jobs)
            self.began[b], self.largest[b], self.which[b] = settled[1:]
        self.ended = 0
        self.before = (_SETTLED // _APART + count) * _APART - int(self.arrived.sum())
        self._note()

    def step(self) -> None:
        """Let the agent act in every lane, and go to its next event.

        Raises:
            ValueError: as `AgentBlocks.replicate`.
        """
        memory = self.batch.memory
        observations = self.config.layout.view(memory.observations.copy())
        actions, state = self.policy.agent.predict(observations, deterministic=True)
        if state is not None:
            allowed = "without a state, for a snapshot of a system does not hold it"
            refuse(f"agent {self.policy.label}", "predict", allowed, state)
        self.config.actions.put(actions, memory.actions)
        self.batch.step()
        # An endless episode ends for one reason only.
        if (self.busy & (memory.systems["done"] > 0)).any():
            self._refuse_number()
        self._note()

    def _refuse_number(self) -> NoReturn:
        raise ValueError(
            f"agent {self.policy.label}: more jobs are present than its environment's capacity, "
            f"{self.config.capacity}; allowed: an agent under which the system is stable, or a larger capacity"
        )

    def _note(self) -> None:
        self.batch.settle(*range(self.batch.count))
        memory = self.batch.memory
        systems, jobs, orders = memory.systems, memory.jobs, memory.orders
        arrived = systems["arrived"].copy()
        self.came = arrived > self.arrived
        self.arrived, self.number = arrived, systems["number"].copy()
        self.time = systems["origin"] + systems["now"]
        came = np.flatnonzero(self.came)
        sizes = jobs["size"][came, orders[came, BY_ARRIVAL, self.number[came] - 1]]
        more = sizes > self.largest[came]
        self.grown = came[more]
        self.largest[self.grown], self.which[self.grown] = sizes[more], arrived[self.grown] - 1
        low = np.flatnonzero((memory.outcomes[:, COMPLETIONS] > 0) & (self.number == self.level))
        numbers = jobs["number"][low[:, None], orders[low, BY_ARRIVAL, : self.level]]
        self.over = low[~(numbers == self.which[low, None]).any(axis=1)]
        self.began[self.over], self.largest[self.over] = self.time[self.over], 0.0
        self.ended += len(self.over)

    def state(self, b: int) -> State:
        """Return where lane b is."""
        observation = self.batch.memory.observations[b].copy()
        return State(self.batch.snapshot(b), observation, self.began[b], self.largest[b], self.which[b])

    def inject(self, states: Mapping[int, State], sizes: Mapping[int, float]) -> None:
        """Put lanes into states, each with a next job of a given size, a whole gap later."""
        self.batch.inject({b: state.snapshot for b, state in states.items()}, sizes)
        for b, state in states.items():
            # The one that the kernel has written anew does not show how long ago the last decision was.
            self.batch.memory.observations[b] = state.observation
            self.arrived[b] = self.batch.memory.systems["arrived"][b]
            self.began[b], self.largest[b], self.which[b] = state.began, state.largest, state.which

    def arrivals(self, b: int) -> FloatArray:
        """Return when the jobs present in lane b have arrived, absolute."""
        return np.asarray(self.batch.memory.systems["origin"][b] + self.batch.present(b)["arrival"])


def child(seed: np.random.SeedSequence, index: int) -> np.random.SeedSequence:
    """Return a child of a seed, which does not count it as `spawn` would."""
    return np.random.SeedSequence(seed.entropy, spawn_key=(*seed.spawn_key, index), pool_size=seed.pool_size)


def first_states(model: Scenario, level: int, seed: np.random.SeedSequence, count: int) -> Iterator[FirstState]:
    """Yield so many states of one long run of the kernel."""
    setting = set_up(parse_policy(_FIRST_POLICY), model.servers, model.spare, model.sizes)
    system, stream = System(setting, counted=(0, _ENDLESS), relative=True), model.stream(seed)
    system.memory.system["level"] = level
    for _ in range(_SETTLED // _APART):
        system.feed(stream.chunk(_APART))
    for _ in range(count):
        system.feed(stream.chunk(_APART))
        memory, s = system.memory, system.memory.system[0]
        remaining = memory.jobs["remaining"].copy()
        service = memory.service[: s["in_service"]]
        remaining[service["slot"]] = service["key"] - s["now"]
        remaining = np.clip(remaining, 0.0, memory.jobs["size"])  # for the clock rounds
        slots = np.flatnonzero(memory.jobs["number"] >= 0)
        slots = slots[np.argsort(memory.jobs["number"][slots])]
        jobs, ages = memory.jobs[slots], s["now"] - memory.jobs["arrival"][slots]
        before = jobs["number"] < s["counted_from"]
        # Somewhere between those of the block and those before it.
        ends = -ages[before].min(initial=np.inf), -ages[~before].max(initial=0.0)
        columns = zip(jobs["size"].tolist(), remaining[slots].tolist(), ages.tolist(), strict=True)
        yield FirstState(
            jobs=tuple(InitialJob(size, left, age, np.inf, False) for size, left, age in columns),
            began=(ends[0] + ends[1]) / 2,
            largest=float(s["block_largest"]),
            which=int(np.flatnonzero(jobs["number"] == s["largest"]).sum()) if s["largest"] >= 0 else -1,
        )
