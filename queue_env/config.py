"""The arguments of an environment: checked, with their defaults, and resolved for its scenario."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from queue_env import action as actions
from queue_env import observation as observations
from queue_env.distributions.checks import finite, positive, refuse, whole
from queue_env.kernel import env_layout
from queue_env.reward import SMALLEST_TAIL, TailCost, Term, default_reward, parse_reward, tail_cost
from queue_env.rules import POLICIES, parse_policy
from queue_env.scenarios import Scenario, scenario
from queue_env.settings import Setting, set_up

__all__ = ["EPISODES", "MOST_STEPS", "NOT_AS_RULES", "RENDER_MODES", "EnvConfig", "make_config"]

EPISODES = {"jobs": env_layout.JOBS, "horizon": env_layout.HORIZON, "big-job": env_layout.BIG_JOB}
_LEAST_BELOW = 1e-3
RENDER_MODES = ("ansi", "rgb_array", "human")
# What the kernel's integers hold, and what fits in memory.
MOST_STEPS = MOST_JOBS = 10**15
MOST_ROWS, MOST_PRESENT = 10**5, 10**6
MOST_SCALE = 1e100
NOT_AS_RULES = {
    "super-server": "it is one server of speed n, and no allocation of n servers does the same",
    "loss-priority": "it turns jobs away, and the environment admits every job",
}
"""The policies that are no allocations of n servers among the jobs present, and why."""
BLIND_RULES = ("fcfs", "lcfs", "plcfs", "ps", "las")


@dataclass(frozen=True)
class EnvConfig:
    """The arguments of an environment; `QueueEnv` says what they mean.

    Attributes that are not arguments: `scenario` is a `Scenario`, `terms` are those of the reward, `rules` labels.
    """

    scenario: Scenario
    action: str
    observation: str
    terms: tuple[Term, ...]
    reward_scale: float
    tail_range: tuple[float, float]
    episode: str
    jobs: int
    horizon: float
    big_sizes: tuple[float, float]
    slots: int
    capacity: int
    decision_interval: float | None
    work_conserving: bool
    symmetric_actions: bool
    size_knowledge: str
    rules: tuple[str, ...]
    allocation_in_info: bool
    records: bool
    render_mode: str | None

    @property
    def servers(self) -> int:
        """Number of servers n."""
        return self.scenario.servers

    @property
    def spare(self) -> float:
        """Spare capacity δ = n(1-ρ)."""
        return self.scenario.spare

    @property
    def unit(self) -> float:
        """Mean size, which is the mean service time on a server of speed one."""
        return self.scenario.sizes.mean

    @cached_property
    def layout(self) -> observations.ObservationLayout:
        """How observations are made up."""
        return observations.ObservationLayout(
            self.observation,
            self.servers,
            self.slots,
            self.unit,
            patience=self.scenario.patience is not None,
            known=self.size_knowledge == "known",
        )

    @cached_property
    def actions(self) -> actions.ActionLayout:
        """How actions are made up."""
        levels = self.scenario.sizes if self.in_classes and self.size_knowledge == "unknown" else None
        return actions.ActionLayout(self.action, self.slots, self.rules, self.symmetric_actions, levels)

    @property
    def in_classes(self) -> bool:
        """Whether the kernel serves two classes of jobs from heaps."""
        return self.action == "threshold"

    @cached_property
    def rule_settings(self) -> tuple[Setting, ...]:
        """The reference rules, resolved for the scenario."""
        made = self.scenario
        return tuple(set_up(parse_policy(rule), made.servers, made.spare, made.sizes) for rule in self.rules)

    @cached_property
    def tail(self) -> TailCost | None:
        """The cost of the tail, if it is a term of the reward."""
        if any(term.kind == env_layout.COST_TAIL for term in self.terms):
            return tail_cost(self.scenario, self.tail_range)
        return None


def make_config(
    source: str | Mapping[str, Any] | Scenario,
    *,
    overrides: Mapping[str, Any] | None,
    action: str,
    observation: str | None,
    reward: str | Mapping[str, float] | None,
    reward_scale: float,
    tail_range: Sequence[float],
    episode: str,
    jobs: int,
    horizon: float,
    big_sizes: Sequence[float] | None,
    slots: int | None,
    capacity: int | None,
    decision_interval: float | None,
    work_conserving: bool,
    symmetric_actions: bool,
    size_knowledge: str,
    rules: Sequence[str] | None,
    allocation_in_info: bool,
    records: bool,
    render_mode: str | None,
) -> EnvConfig:
    """Check the arguments of an environment and resolve their defaults.

    Raises:
        ValueError: an argument is not allowed; names it, its value and what is allowed.
    """
    if not isinstance(overrides, Mapping | None):
        refuse("environment", "overrides", "a mapping of fields of the scenario, or None", overrides)
    made = scenario(source, **dict(overrides or {}))
    _among("action", action, actions.KINDS)
    if observation is None:
        observation = "summary" if action == "threshold" else "flat"
    _among("observation", observation, observations.KINDS)
    _among("episode", episode, EPISODES)
    _among("size_knowledge", size_knowledge, ("known", "unknown"))
    if render_mode is not None:
        _among("render_mode", render_mode, RENDER_MODES)
    flags = {
        "work_conserving": work_conserving,
        "symmetric_actions": symmetric_actions,
        "allocation_in_info": allocation_in_info,
        "records": records,
    }
    for name, flag in flags.items():
        if not isinstance(flag, bool):
            refuse("environment", name, "True or False", flag)
    if observation == "compact" and action in ("allocation", "priority"):
        refuse(
            "environment",
            "observation",
            f"flat or dict with action={action!r}, which names rows of the table",
            observation,
        )
    if (observation == "summary") != (action == "threshold"):
        allowed = "summary with action='threshold'" if action == "threshold" else f"flat or dict with action={action!r}"
        refuse("environment", "observation", allowed, observation)
    if observation in ("compact", "summary") and allocation_in_info:
        allowed = f"False with observation={observation!r}, which has no job table"
        refuse("environment", "allocation_in_info", allowed, True)
    known = size_knowledge == "known"
    if not known and (action == "anchor" or observation == "compact"):
        refuse("environment", "size_knowledge", "known with action='anchor' or observation='compact'", size_knowledge)
    if action not in ("allocation", "anchor"):
        _only_with("action='allocation' or 'anchor', which set rates", "work_conserving", work_conserving, True)
    if action not in ("allocation", "anchor", "threshold"):
        _only_with("action='allocation', 'anchor' or 'threshold'", "symmetric_actions", symmetric_actions, False)
    if action == "threshold":
        _only_with("action is another than 'threshold', which has no job table", "slots", slots, None)
    if action != "rule":
        _only_with("action='rule'", "rules", rules, None)
    if episode != "big-job":
        _only_with("episode='big-job'", "big_sizes", big_sizes, None)
    times = _range("tail_range", tail_range)
    terms = parse_reward(default_reward(made, times) if reward is None else reward)
    rows = _slots(slots, made.servers, action)
    config = EnvConfig(
        scenario=made,
        action=action,
        observation=observation,
        terms=terms,
        reward_scale=_scale(reward_scale),
        tail_range=times,
        episode=episode,
        jobs=whole("environment", "jobs", jobs, 1, MOST_JOBS),
        horizon=positive("environment", "horizon", horizon),
        big_sizes=_big_sizes(made, big_sizes) if episode == "big-job" else (math.nan, math.nan),
        slots=rows,
        capacity=_capacity(capacity, made.servers, rows),
        decision_interval=_interval(decision_interval),
        **flags,
        size_knowledge=size_knowledge,
        rules=_rules(rules, made, known) if action == "rule" else (),
        render_mode=render_mode,
    )
    # What is left to check is checked when it is resolved.
    _ = config.tail, config.rule_settings
    return config


def _among(name: str, value: object, allowed: Any) -> None:
    if not isinstance(value, str) or value not in allowed:
        refuse("environment", name, f"one of {', '.join(allowed)}", value)


def _only_with(what: str, name: str, value: object, otherwise: object) -> None:
    """Refuse an argument that would change nothing."""
    if value is not otherwise:
        refuse("environment", name, f"{otherwise} unless {what}", value)


def _scale(value: float) -> float:
    scale = positive("environment", "reward_scale", value)
    if scale > MOST_SCALE:
        refuse("environment", "reward_scale", f"at most {MOST_SCALE:g}", value)
    return scale


def _range(name: str, value: Sequence[float]) -> tuple[float, float]:
    # A text, too, has a length and entries: "12" is not the range from 1 to 2.
    ends = list(value) if isinstance(value, Sequence | np.ndarray) and not isinstance(value, str | bytes) else []
    numbers = [finite("environment", f"{name}[{i}]", end) for i, end in enumerate(ends)]
    if len(numbers) != 2 or not 0 < numbers[0] < numbers[1]:
        refuse("environment", name, "two numbers, 0 < low < high", value)
    return numbers[0], numbers[1]


def _interval(value: float | None) -> float | None:
    return None if value is None else positive("environment", "decision_interval", value)


def _slots(value: int | None, servers: int, action: str) -> int:
    if value is None:
        return 0 if action == "threshold" else max(16, 2 * servers + 3)
    least = 2 * servers + 3 if action in ("allocation", "priority") else 4
    return whole("environment", "slots", value, least, MOST_ROWS)


def _capacity(value: int | None, servers: int, slots: int) -> int:
    if value is None:
        return max(1000, 10 * servers, slots)
    return whole("environment", "capacity", value, max(servers + 1, slots), MOST_PRESENT)


def _big_sizes(made: Scenario, value: Sequence[float] | None) -> tuple[float, float]:
    """Return the range of the first job's size in time units."""
    if made.patience is not None or made.load >= 1 or made.sizes.has_atoms:
        allowed = "jobs or horizon unless load < 1, nobody has patience, and the law of sizes has no atoms"
        refuse("environment", "episode", allowed, "big-job")
    mean = made.sizes.mean
    # Later sizes are drawn until one is at most the first; that must not take for ever.
    least, most = float(made.sizes.quantile(_LEAST_BELOW)), made.sizes.support[1]
    if value is not None:
        low, high = (end * mean for end in _range("big_sizes", value))
        if not least <= low < high <= most or float(made.sizes.tail(low)) == 0.0:
            allowed = f"within {least / mean:g}, below which are {_LEAST_BELOW:g} of the sizes, and {most / mean:g}"
            refuse("environment", "big_sizes", allowed, value)
        return low, high
    high = min(1e4 * mean, most, float(made.sizes.tail_quantile(SMALLEST_TAIL)))
    return max(min(mean, high / 2), least), high


def _rules(given: Sequence[str] | None, made: Scenario, known: bool) -> tuple[str, ...]:
    """Return the labels of the rules, all that can run by default."""
    usable = [name for name in POLICIES if name not in NOT_AS_RULES and (known or name in BLIND_RULES)]
    if given is None:
        return tuple(name for name in usable if _runs(name, made))
    if isinstance(given, str) or not given:
        refuse("environment", "rules", "a list of policies", given)
    labels = []
    for spec in given:
        policy = parse_policy(spec)
        if policy.user is not None or policy.name not in usable:
            refuse(
                "environment", "rules", f"among {', '.join(usable)}" + ("" if known else " (sizes are unknown)"), spec
            )
        labels.append(policy.label)
    if len(set(labels)) < len(labels):
        refuse("environment", "rules", "each given once", list(given))
    return tuple(labels)


def _runs(name: str, made: Scenario) -> bool:
    try:
        set_up(parse_policy(name), made.servers, made.spare, made.sizes)
    except ValueError:
        return False
    return True
