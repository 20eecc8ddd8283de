"""A network as an agent in the environment against the same network in the kernel."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from baselines import make_agent
from baselines.network import NetworkAgent
from queue_env import QueueEnv, Workload
from queue_env.network import NetworkPolicy
from queue_env.rules import Policy
from queue_env.settings import set_up
from queue_env.system import System
from queue_env.workload import Chunk
from tests.baselines.crowds import stub
from tests.networks import random_policy

COUNT = 400
SERVERS = (1, 2, 4)
HIDDEN: tuple[tuple[int, ...], ...] = ((), (5,), (4, 3))


def jobs(servers: int, burst: int = 0) -> Workload:
    """Pareto sizes at a load of 0.8; the last `burst` jobs come a hundred times as fast."""
    rng = np.random.default_rng([servers, burst])
    gaps = rng.exponential(1 / (0.8 * servers), COUNT)
    gaps[COUNT - burst :] /= 100
    return Workload(np.cumsum(gaps), (1 - rng.random(COUNT)) ** (-1 / 1.5) / 3)


def make(servers: int, **changes: Any) -> QueueEnv:
    sizes = {"law": "pareto", "alpha": 1.5, "mean": 1.0}
    arguments: dict[str, Any] = {
        "scenario": {"servers": servers, "load": 0.8, "sizes": sizes},
        "action": "anchor",
        "observation": "dict",
        "records": True,
    }
    return QueueEnv(**arguments | changes)


def compiled(env: QueueEnv, policy: NetworkPolicy, workload: Workload) -> NDArray[np.void]:
    """The records of the kernel under the network, with unit and spare capacity of the environment's scenario."""
    model = env.config.scenario
    setting = set_up(Policy(policy.name, {}, policy), model.servers, model.spare, model.sizes)
    system = System(setting, counted=(0, COUNT), recorded=COUNT)
    system.feed(Chunk(workload.arrival_times.copy(), workload.sizes.copy(), None))
    system.drain()
    return system.memory.records


@pytest.mark.parametrize("burst", [0, 150])
@pytest.mark.parametrize("hidden", HIDDEN)
@pytest.mark.parametrize("servers", SERVERS)
@pytest.mark.parametrize("action", ["anchor", "allocation"])
def test_departures_are_those_of_the_kernel(action: str, servers: int, hidden: tuple[int, ...], burst: int) -> None:
    workload, policy = jobs(servers, burst), random_policy(servers + 10 * len(hidden), hidden)
    env = make(servers, action=action, slots=2 * servers + 3)
    agent = make_agent(policy, env)
    assert isinstance(agent, NetworkAgent)
    observation, _ = env.reset(seed=0, options={"workload": workload})
    over, most, rates = False, 0, []
    while not over:
        most = max(most, int(observation["number"].item()))
        decided, _ = agent.predict(observation)
        rates.append(decided[0])
        observation, _, terminated, truncated, _ = env.step(decided)
        over = terminated or truncated
    expected = compiled(env, policy, workload)
    np.testing.assert_allclose(env.records()["departure_time"], expected["departure_time"], rtol=0, atol=1e-9)
    assert most > (2 * servers + 3 if burst else servers)
    assert np.std(rates) > 0.02


@pytest.mark.parametrize("view", ["compact", "flat"])
@pytest.mark.parametrize("hidden", HIDDEN)
@pytest.mark.parametrize("servers", SERVERS)
def test_actions_in_float32_views_are_those_of_the_dict_view(servers: int, hidden: tuple[int, ...], view: str) -> None:
    """To 1e-5, but where the others' work is a hundred times less than the anchor's and not all of them are shown."""
    workload, policy = jobs(servers, 150), random_policy(servers + 10 * len(hidden), hidden)
    exact, rounded = make(servers), make(servers, observation=view)
    one, other = make_agent(policy, exact), make_agent(policy, rounded)
    seen, shown = (env.reset(seed=0, options={"workload": workload})[0] for env in (exact, rounded))
    over, compared, decisions = False, 0, 0
    while not over:
        true = exact.layout.read(seen)
        decided, action = one.predict(seen)[0], other.predict(shown)[0]
        assert true.work is not None
        assert true.remaining is not None
        anchor = float(np.sum(true.remaining * true.anchor))
        others = float(true.work[0]) - anchor
        decisions += 1
        if anchor < 100 * others or true.number[0] <= servers + 2:
            np.testing.assert_allclose(action, decided, rtol=0, atol=1e-5)
            compared += 1
        # Both go on from the decision of the exact one, so that they stay in the same state.
        seen, _, terminated, truncated, _ = exact.step(decided)
        shown = rounded.step(decided)[0]
        over = terminated or truncated
    assert compared > 0.9 * decisions > 300


def test_all_systems_run_at_rate_one_with_a_server_for_each_job() -> None:
    env = make(2)
    agent = make_agent(random_policy(1), env)
    observation, _ = env.reset(seed=0, options={"jobs": [{"size": 3.0}, {"size": 1.0}]})
    assert agent.predict(observation)[0].tolist() == [1.0]


def test_symmetric_actions() -> None:
    one, other = (make(2, symmetric_actions=symmetric) for symmetric in (False, True))
    start = {"jobs": [{"size": size} for size in (30.0, 1.0, 2.0, 4.0)]}
    (rate,), (twice,) = (
        make_agent(random_policy(1), env).predict(env.reset(seed=0, options=start)[0])[0] for env in (one, other)
    )
    assert twice == pytest.approx(2 * rate - 1, abs=1e-15)
    assert not math.isclose(rate, 1.0)


def test_what_is_refused() -> None:
    policy = random_policy(1)
    with pytest.raises(ValueError, match="action must be 'allocation' or 'anchor', for the environment's rules are"):
        make_agent(policy, stub(2, action="rule"))
    with pytest.raises(ValueError, match="net1: slots must be at least 7, for the table to hold the anchor"):
        make_agent(policy, stub(2, action="anchor", slots=6))
    with pytest.raises(ValueError, match=r"policy must be learned:FILE\.json"):
        NetworkAgent(stub(2, action="anchor"), "srpt")
