"""Every agent in the environment against the compiled policy: the same jobs, the same departure times."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from baselines import AGENTS, expressible, make_agent
from queue_env import QueueEnv, Workload, simulate

SIZES: dict[str, dict[str, Any]] = {
    "exponential": {"law": "exponential", "mean": 1.0},
    "pareto": {"law": "pareto", "alpha": 1.5, "mean": 1.0},
}
LOAD, JOBS = 0.8, 300
CASES = [(action, name) for action in ("rule", "allocation", "priority", "anchor") for name in expressible(action)]
ON_SERVERS = [
    (action, name, servers)
    for action, name in CASES
    for servers in (1, 2, 4, 10)
    if (name, servers) != ("thresh-split", 1)
]
NEED_ALL_JOBS = ("thresh-split", "psjf", "sjf", "lcfs", "plcfs", "ps")
"""Of the agents that act by job, those that may need a row beyond the table."""


def jobs(law: str, servers: int, *, burst: int = 0, seed: int = 1) -> Workload:
    """Jobs at load 0.8, the last `burst` of which arrive a hundred times as fast."""
    rng = np.random.default_rng(seed)
    gaps = rng.exponential(1 / (LOAD * servers), JOBS)
    gaps[JOBS - burst :] /= 100
    sizes = rng.exponential(1.0, JOBS) if law == "exponential" else (1 - rng.random(JOBS)) ** (-1 / 1.5) / 3
    return Workload(np.cumsum(gaps), sizes)


def label(name: str, servers: int) -> str:
    """The policy with what its defaults take from the scenario written out, for a workload has its own load and law."""
    spare = servers * (1 - LOAD)
    return {"dynasplit": f"dynasplit:delta={spare!r}", "thresh-split": "thresh-split:d=1.5"}.get(name, name)


def make(action: str, name: str, law: str, servers: int, **changes: Any) -> QueueEnv:
    arguments: dict[str, Any] = {
        "scenario": {"servers": servers, "load": LOAD, "sizes": SIZES[law]},
        "action": action,
        "observation": "dict",
        "records": True,
        "capacity": 1000,
        "work_conserving": name != "thresh-split",
        "rules": [label(name, servers)] if action == "rule" else None,
    }
    return QueueEnv(**arguments | changes)


def run(env: QueueEnv, policy: str, workload: Workload) -> tuple[NDArray[np.void], int]:
    """The records of an episode, and the most jobs that were present at a decision."""
    agent = make_agent(policy, env)
    observation, _ = env.reset(seed=0, options={"workload": workload})
    most, over = 0, False
    while not over:
        most = max(most, int(observation["number"].item()))
        action, _ = agent.predict(observation)
        observation, _, terminated, truncated, _ = env.step(action)
        over = terminated or truncated
    return env.records(), most


def assert_as_compiled(records: NDArray[np.void], workload: Workload, policy: str, servers: int, **kwargs: Any) -> None:
    compiled = simulate(workload, policy, servers=servers, records=True, **kwargs).records
    assert compiled is not None
    assert len(records) == len(workload)
    np.testing.assert_array_equal(records["outcome"], compiled["outcome"])
    for time in ("arrival_time", "start_time", "departure_time", "waiting_time"):
        np.testing.assert_allclose(records[time], compiled[time], rtol=0, atol=1e-9, err_msg=time)


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
    if action in ("allocation", "priority") and name in NEED_ALL_JOBS and (name, servers) != ("plcfs", 1):
        with pytest.raises(ValueError, match="slots"):
            run(env, policy, workload)
        return
    records, most = run(env, policy, workload)
    assert most > slots
    assert_as_compiled(records, workload, policy, servers)


@pytest.mark.parametrize("servers", [1, 2, 4])
@pytest.mark.parametrize("name", ["fcfs", "lcfs", "srpt"])
def test_with_patience(name: str, servers: int) -> None:
    rng = np.random.default_rng(5)
    without = jobs("exponential", servers, burst=50)
    workload = Workload(without.arrival_times, without.sizes, rng.exponential(2.0, JOBS))
    scenario = {
        "servers": servers,
        "load": LOAD,
        "sizes": SIZES["exponential"],
        "patience": {"law": "exponential", "mean": 2.0},
        "clock": "queue",
    }
    env = make("rule", name, "exponential", servers, scenario=scenario)
    records, _ = run(env, name, workload)
    assert {0, 1} == set(records["outcome"].tolist())
    assert_as_compiled(records, workload, name, servers)


def test_every_agent_has_its_turn() -> None:
    assert {name for _, name in CASES} == set(AGENTS)
    assert set(NEED_ALL_JOBS) <= set(AGENTS)
