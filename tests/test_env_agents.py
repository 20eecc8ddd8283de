"""Every agent in the environment against the compiled policy: the same jobs, the same departure times."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from baselines import AGENTS, expressible, make_agent
from queue_env import QueueEnv, Workload, simulate
from queue_env.observation import Observation
from queue_env.scenarios import CLOCKS

SIZES: dict[str, dict[str, Any]] = {
    "exponential": {"law": "exponential", "mean": 1.0},
    "pareto": {"law": "pareto", "alpha": 1.5, "mean": 1.0},
}
LOAD, JOBS, FEW = 0.8, 300, 120
CASES = [(action, name) for action in ("rule", "allocation", "priority", "anchor") for name in expressible(action)]
ON_SERVERS = [
    (action, name, servers)
    for action, name in CASES
    for servers in (1, 2, 4, 10)
    if (name, servers) != ("thresh-split", 1)
]
ON_VIEWS = [
    (observation, *case)
    for observation in ("flat", "compact")
    for case in ON_SERVERS
    if observation == "flat" or case[0] in ("anchor", "rule")
]
BY_AGE, BY_SIZE = ("fcfs", "lcfs", "plcfs", "thresh-split"), ("psjf", "sjf")
"""The policies whose decisions hang on ages or sizes as they are shown, and not on the order of the rows and flags."""
NEED_ALL_JOBS = ("thresh-split", "psjf", "sjf", "lcfs", "plcfs", "ps")
"""Of the agents that act by job, those that may need a row beyond the table."""


def jobs(law: str, servers: int, *, burst: int = 0, seed: int = 1, count: int = JOBS) -> Workload:
    """Jobs at load 0.8, the last `burst` of which arrive a hundred times as fast."""
    rng = np.random.default_rng(seed)
    gaps = rng.exponential(1 / (LOAD * servers), count)
    gaps[count - burst :] /= 100
    return Workload(np.cumsum(gaps), as_sizes(law, 1 - rng.random(count)))


def as_sizes(law: str, tail: NDArray[np.float64]) -> NDArray[np.float64]:
    """Sizes at which the tail of a law has these values."""
    return -np.log(tail) if law == "exponential" else tail ** (-1 / 1.5) / 3


def label(name: str, servers: int) -> str:
    """The policy with what its defaults take from the scenario written out, for a workload has its own load and law."""
    spare = servers * (1 - LOAD)
    written = {"dynasplit": f"dynasplit:delta={spare!r}", "thresh-split": "thresh-split:d=1.5"}
    return (written | {"two-class": "two-class:tau=0.7"}).get(name, name)


def make(action: str, name: str, law: str, servers: int, **changes: Any) -> QueueEnv:
    arguments: dict[str, Any] = {
        "scenario": {"servers": servers, "load": LOAD, "sizes": SIZES[law]},
        "action": action,
        "observation": "dict",
        "records": True,
        "capacity": 1000,
        "work_conserving": name != "thresh-split" or action == "rule",
        "rules": [label(name, servers)] if action == "rule" else None,
    }
    return QueueEnv(**arguments | changes)


def number_in(observation: Observation) -> int:
    """The jobs present, read without the rest, which would take as long as the agent does."""
    if isinstance(observation, dict):
        return int(observation["number"].item())
    return round(math.expm1(observation[0]))


def run(env: QueueEnv, policy: str, workload: Workload) -> tuple[NDArray[np.void], int]:
    """The records of an episode, and the most jobs that were present at a decision."""
    agent = make_agent(policy, env)
    observation, _ = env.reset(seed=0, options={"workload": workload})
    most, over = 0, False
    while not over:
        most = max(most, number_in(observation))
        action, _ = agent.predict(observation)
        observation, _, terminated, truncated, _ = env.step(action)
        over = terminated or truncated
    return env.records(), most


def assert_as_compiled(
    records: NDArray[np.void],
    workload: Workload,
    policy: str,
    servers: int,
    *,
    clock: str | None = None,
    within: float = 1e-9,
) -> None:
    compiled = simulate(workload, policy, servers=servers, records=True, clock=clock).records
    assert compiled is not None
    assert len(records) == len(workload)
    np.testing.assert_array_equal(records["outcome"], compiled["outcome"])
    for time in ("arrival_time", "start_time", "departure_time", "waiting_time"):
        np.testing.assert_allclose(records[time], compiled[time], rtol=0, atol=within, err_msg=time)


def may_need_hidden_rows(action: str, name: str, servers: int) -> bool:
    return action in ("allocation", "priority") and name in NEED_ALL_JOBS and (name, servers) != ("plcfs", 1)


@pytest.mark.parametrize("law", SIZES)
@pytest.mark.parametrize(("action", "name", "servers"), ON_SERVERS)
def test_departures_are_those_of_the_compiled_policy(action: str, name: str, servers: int, law: str) -> None:
    workload = jobs(law, servers)
    env = make(action, name, law, servers, slots=JOBS)
    policy = label(name, servers)
    records, most = run(env, policy, workload)
    assert servers < most <= JOBS
    assert_as_compiled(records, workload, policy, servers)


@pytest.mark.parametrize(("action", "name", "servers"), ON_SERVERS)
def test_more_jobs_than_rows(action: str, name: str, servers: int) -> None:
    workload, slots, policy = jobs("pareto", servers, burst=150), 2 * servers + 3, label(name, servers)
    env = make(action, name, "pareto", servers, slots=slots)
    if may_need_hidden_rows(action, name, servers):
        with pytest.raises(ValueError, match="slots"):
            run(env, policy, workload)
        return
    records, most = run(env, policy, workload)
    assert most > slots
    assert_as_compiled(records, workload, policy, servers)


def patient(servers: int, clock: str) -> dict[str, Any]:
    """A scenario with patience that runs out by this clock."""
    patience = {"law": "exponential", "mean": 2.0}
    return {"servers": servers, "load": LOAD, "sizes": SIZES["pareto"], "patience": patience, "clock": clock}


def jobs_with_patience(servers: int) -> Workload:
    """Jobs of which many arrive at nearly one time, so that some lose patience and some are served."""
    without = jobs("pareto", servers, burst=60, count=FEW)
    return Workload(without.arrival_times, without.sizes, np.random.default_rng(5).exponential(2.0, FEW))


def some_leave(name: str, clock: str) -> set[int]:
    """The outcomes that must occur; under "ps" nobody's rate is zero, so that the clock "queue" never runs."""
    return {0} if (name, clock) == ("ps", "queue") else {0, 1}


@pytest.mark.parametrize("clock", CLOCKS)
@pytest.mark.parametrize(("action", "name", "servers"), ON_SERVERS)
def test_with_patience(action: str, name: str, servers: int, clock: str) -> None:
    workload, policy = jobs_with_patience(servers), label(name, servers)
    env = make(action, name, "pareto", servers, scenario=patient(servers, clock), slots=len(workload))
    records, most = run(env, policy, workload)
    assert most > servers
    assert set(records["outcome"].tolist()) == some_leave(name, clock)
    assert_as_compiled(records, workload, policy, servers, clock=clock)


@pytest.mark.parametrize("clock", CLOCKS)
@pytest.mark.parametrize(("action", "name", "servers"), ON_SERVERS)
def test_with_patience_and_more_jobs_than_rows(action: str, name: str, servers: int, clock: str) -> None:
    workload, slots, policy = jobs_with_patience(servers), 2 * servers + 3, label(name, servers)
    env = make(action, name, "pareto", servers, scenario=patient(servers, clock), slots=slots)
    if may_need_hidden_rows(action, name, servers):
        with pytest.raises(ValueError, match="slots"):
            run(env, policy, workload)
        return
    records, most = run(env, policy, workload)
    assert most > slots
    assert set(records["outcome"].tolist()) == some_leave(name, clock)
    assert_as_compiled(records, workload, policy, servers, clock=clock)


# ---- the float32 views -----------------------------------------------------------------------------


def jobs_apart(law: str, servers: int, *, burst: int = 0) -> Workload:
    """Jobs as `jobs` has them, but no two of an age or a size that six digits do not tell apart."""
    rng = np.random.default_rng(3)
    gaps = rng.exponential(1 / (LOAD * servers), FEW)
    gaps[FEW - burst :] /= 100
    sizes = as_sizes(law, (rng.permutation(FEW) + 0.5) / FEW)
    return Workload(np.cumsum(np.maximum(gaps, 1e-3)), sizes)


def parameters_by_view(name: str, action: str, servers: int) -> dict[str, float]:
    """The policies to run in a float32 view, and how near the times must be: γ has six digits if sizes matter to it."""
    policy = label(name, servers)
    if name != "dynasplit" or action == "rule":
        return {policy: 1e-9}
    return {policy: 1e-6, f"{policy},margin=constant": 1e-9}


@pytest.mark.parametrize("law", SIZES)
@pytest.mark.parametrize(("observation", "action", "name", "servers"), ON_VIEWS)
def test_float32_views_give_the_same_departures(
    observation: str, action: str, name: str, servers: int, law: str
) -> None:
    workload = jobs_apart(law, servers)
    env = make(action, name, law, servers, slots=FEW, observation=observation)
    for policy, within in parameters_by_view(name, action, servers).items():
        records, most = run(env, policy, workload)
        assert servers < most <= FEW
        assert_as_compiled(records, workload, policy, servers, within=within)


@pytest.mark.parametrize(("observation", "action", "name", "servers"), ON_VIEWS)
def test_float32_views_of_more_jobs_than_rows(observation: str, action: str, name: str, servers: int) -> None:
    workload, slots = jobs_apart("pareto", servers, burst=60), 2 * servers + 3
    env = make(action, name, "pareto", servers, slots=slots, observation=observation)
    for policy, within in parameters_by_view(name, action, servers).items():
        if may_need_hidden_rows(action, name, servers):
            with pytest.raises(ValueError, match="slots"):
                run(env, policy, workload)
            continue
        records, most = run(env, policy, workload)
        assert most > slots
        assert_as_compiled(records, workload, policy, servers, within=within)


@pytest.mark.parametrize("clock", CLOCKS)
@pytest.mark.parametrize(("observation", "action", "name"), [case[:3] for case in ON_VIEWS if case[3] == 2])
def test_float32_views_with_patience(observation: str, action: str, name: str, clock: str) -> None:
    without, servers = jobs_apart("pareto", 2, burst=60), 2
    workload = Workload(without.arrival_times, without.sizes, np.random.default_rng(5).exponential(2.0, FEW))
    env = make(action, name, "pareto", servers, scenario=patient(servers, clock), slots=FEW, observation=observation)
    for policy, within in parameters_by_view(name, action, servers).items():
        records, _ = run(env, policy, workload)
        assert set(records["outcome"].tolist()) == some_leave(name, clock)
        assert_as_compiled(records, workload, policy, servers, clock=clock, within=within)


def jobs_nearly_tied(servers: int) -> Workload:
    """Jobs that arrive in clusters, and whose sizes are of a few kinds, with differences that float32 rounds off."""
    rng = np.random.default_rng(9)
    gaps = rng.exponential(10 / (LOAD * servers), FEW) * (np.arange(FEW) % 10 == 0) + 1e-8 * rng.random(FEW)
    sizes = rng.choice([0.25, 0.5, 1.0, 2.5], FEW) * (1 + 1e-8 * rng.random(FEW))
    return Workload(np.cumsum(gaps), sizes)


def served_rows(env: QueueEnv, action: NDArray[np.float64], present: NDArray[np.bool_]) -> NDArray[np.float64]:
    """The rates that an agent's action asks for."""
    if env.actions.kind != "priority":
        return action
    best = np.argsort(-action[present], kind="stable")[: env.config.servers]
    rates = np.zeros(len(action))
    rates[np.flatnonzero(present)[best]] = 1.0
    return rates


@pytest.mark.parametrize(
    ("action", "name", "servers"), [case for case in ON_SERVERS if case[0] in ("allocation", "priority")]
)
def test_flat_decisions_are_those_of_the_dict_view_but_for_near_ties(action: str, name: str, servers: int) -> None:
    exact, rounded = (
        make(action, name, "exponential", servers, slots=FEW, observation=view) for view in ("dict", "flat")
    )
    one, other = (make_agent(label(name, servers), env) for env in (exact, rounded))
    seen, view = (env.reset(seed=0, options={"workload": jobs_nearly_tied(servers)})[0] for env in (exact, rounded))
    over, unlike = False, 0
    while not over:
        true, shown = exact.layout.read(seen), rounded.layout.read(view)
        for flag in ("number", "anchor", "largest", "served", "present"):
            np.testing.assert_array_equal(getattr(true, flag), getattr(shown, flag), err_msg=flag)
        decided = one.predict(seen)[0]
        wanted, got = (served_rows(exact, a, true.present[0]) for a in (decided, other.predict(view)[0]))
        # Rates between 0 and 1 are those of "ps", from N alone, and of "dynasplit", from the anchor's size.
        differ = np.abs(wanted - got) > 1e-6
        if differ.any():
            assert name in BY_AGE + BY_SIZE
            key = (true.age if name in BY_AGE else true.size)[0]  # type: ignore[index]
            gained, lost = (np.sort(key[differ & (rates > 0)]) for rates in (got, wanted))
            np.testing.assert_allclose(gained, lost, rtol=1e-6, atol=1e-6)
        unlike += int(differ.any())
        # Both go on from the decision of the exact one, so that they stay in the same state.
        seen, _, terminated, truncated, _ = exact.step(decided)
        view = rounded.step(decided)[0]
        over = terminated or truncated
    assert (unlike > 0) == (name in BY_AGE + BY_SIZE)


def test_every_agent_has_its_turn() -> None:
    assert {name for _, name in CASES} == set(AGENTS)
    assert set(NEED_ALL_JOBS) <= set(AGENTS)
