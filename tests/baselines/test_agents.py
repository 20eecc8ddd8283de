"""Agents against the laws of their policies on jobs made up by hand and at random, and what they refuse."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest

from baselines import AGENTS, REGISTRY, Agent, expressible, make_agent
from baselines.dynasplit import margin
from baselines.srpt import SRPT
from queue_env import index_policy
from queue_env.kernel import anchor as kernel
from queue_env.rules import MARGINS, POLICIES
from tests.baselines.crowds import (
    Crowd,
    Job,
    crowd,
    lawful_rates,
    lawful_rows,
    observation,
    rates_of_anchor_action,
    shown_by,
    stub,
)

LABELS = {"thresh-split": "thresh-split:d=2.5"}
ALWAYS_SHOWN = ("srpt", "split", "dynasplit", "fcfs")
SERVERS = (1, 2, 3, 6)


def crowds(servers: int, low: int, high: int, ties: bool = True, count: int = 120) -> list[Crowd]:
    """A batch with `low` to `high` jobs present."""
    rng = np.random.default_rng([servers, low, high, ties])
    return [crowd(rng, int(rng.integers(low, high + 1)), servers, ties) for _ in range(count)]


def agent_of(name: str, servers: int = 2, **arguments: Any) -> Agent:
    """An agent in an environment that lets it act."""
    idles = name == "thresh-split" and arguments.get("action", "allocation") == "allocation"
    return make_agent(LABELS.get(name, name), stub(servers, **({"work_conserving": not idles} | arguments)))


# ---- which there are -----------------------------------------------------------------------------


def test_every_policy_has_an_agent_but_two() -> None:
    assert [*AGENTS, "super-server", "loss-priority"] == list(REGISTRY)
    assert all(agent.name == name for name, agent in AGENTS.items())


def test_what_can_be_expressed() -> None:
    assert set(expressible("rule")) == set(POLICIES) - {"super-server", "loss-priority"}
    ranked = {"fcfs", "lcfs", "plcfs", "srpt", "psjf", "sjf", "split"}
    assert set(expressible("priority")) == ranked
    assert set(expressible("allocation")) == ranked | {"ps", "thresh-split", "dynasplit"}
    assert set(expressible("anchor")) == {"srpt", "dynasplit"}
    assert set(expressible("threshold")) == {"fcfs", "lcfs", "two-class"}
    with pytest.raises(ValueError, match="one of allocation, anchor, priority, rule, threshold, got 'rates'"):
        expressible("rates")


# ---- laws ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "servers"), [case for case in product(expressible("allocation"), SERVERS) if case != ("thresh-split", 1)]
)
def test_rates_are_lawful(name: str, servers: int) -> None:
    agent = agent_of(name, servers)
    jobs = crowds(servers, 0, agent.layout.slots)
    rates, state = agent.predict(observation(agent.layout, jobs), "state")
    assert (rates.dtype, state) == (np.float64, "state")
    np.testing.assert_allclose(rates, lawful_rows(name, agent.layout, jobs), atol=1e-15)


@pytest.mark.parametrize("name", expressible("allocation"))
def test_rates_from_compressed_observations(name: str) -> None:
    agent = agent_of(name, observation="flat")
    jobs = crowds(2, 0, agent.layout.slots, ties=False)
    rates, _ = agent.predict(observation(agent.layout, jobs))
    np.testing.assert_allclose(rates, lawful_rows(name, agent.layout, jobs), atol=1e-6)


@pytest.mark.parametrize("view", ["flat", "dict"])
@pytest.mark.parametrize("servers", SERVERS)
@pytest.mark.parametrize("name", ALWAYS_SHOWN)
def test_what_the_table_always_shows_is_enough(name: str, servers: int, view: str) -> None:
    slots = 2 * servers + 3
    agent = agent_of(name, servers, observation=view, slots=slots)
    jobs = crowds(servers, slots + 1, 60, ties=view == "dict")
    rates, _ = agent.predict(observation(agent.layout, jobs))
    np.testing.assert_allclose(rates, lawful_rows(name, agent.layout, jobs), atol=1e-6 if view == "flat" else 1e-15)
    np.testing.assert_allclose(rates.sum(axis=1), servers, rtol=1e-15)


@pytest.mark.parametrize("servers", SERVERS)
@pytest.mark.parametrize("name", expressible("priority"))
def test_highest_priorities_are_lawful(name: str, servers: int) -> None:
    agent = agent_of(name, servers, action="priority")
    jobs = crowds(servers, 0, agent.layout.slots)
    values, _ = agent.predict(observation(agent.layout, jobs))
    assert values.dtype == np.float64
    assert (values.min(), values.max()) == (-1.0, 1.0)
    assert all(len(set(row)) == agent.layout.rows for row in values)
    present = np.arange(agent.layout.rows) < np.array([[len(one.jobs)] for one in jobs])
    rank = np.argsort(np.argsort(-values, axis=1), axis=1)
    served = (rank < servers) & present
    np.testing.assert_array_equal(served, lawful_rows(name, agent.layout, jobs))


@pytest.mark.parametrize("view", ["flat", "dict", "compact"])
@pytest.mark.parametrize("servers", SERVERS)
@pytest.mark.parametrize("name", expressible("anchor"))
def test_anchor_rates_are_lawful(name: str, servers: int, view: str) -> None:
    agent = agent_of(name, servers, action="anchor", observation=view, slots=2 * servers + 3)
    jobs = crowds(servers, 0, 40)
    rates, _ = agent.predict(observation(agent.layout, jobs))
    assert rates.shape == (len(jobs), 1)
    for one, (rate,) in zip(jobs, rates.tolist(), strict=True):
        expected, found = lawful_rates(name, one, servers), rates_of_anchor_action(one, servers, rate)
        for job in one.jobs:
            assert found.get(job.number, 0.0) == pytest.approx(expected.get(job.number, 0.0), abs=1e-6)


@pytest.mark.parametrize("kind", MARGINS)
@pytest.mark.parametrize("delta", [0.3, 1.0, 1.9])
def test_margin_is_that_of_the_kernel(kind: str, delta: float) -> None:
    sizes = np.array([1e-3, 1.0, 7.5, 1e6, 1e18])
    agent = agent_of(f"dynasplit:delta={delta},margin={kind}", action="anchor", observation="dict")
    code, shape = agent.setting.parameters
    expected = [kernel.margin.py_func(code, shape, size, delta) for size in sizes]
    np.testing.assert_allclose(margin(sizes, delta, code, shape), expected, rtol=1e-15)
    jobs = [Crowd([Job(0, 9.0, size, 0.5), Job(1, 10.0, 0.5, 0.5), Job(2, 11.0, 0.5, 0.5)]) for size in sizes]
    rates, _ = agent.predict(observation(agent.layout, jobs))
    np.testing.assert_allclose(rates[:, 0], np.minimum(1.0, delta - np.array(expected)), rtol=1e-15)


def test_defaults_are_those_of_the_scenario() -> None:
    assert agent_of("dynasplit", 3).setting.spare == pytest.approx(0.6)
    threshold = make_agent("thresh-split", stub(work_conserving=False)).setting.parameters[0]
    sizes = stub().config.scenario.sizes
    assert float(sizes.truncated_mean(threshold)) == pytest.approx(sizes.mean / 2)


# ---- ties and hidden sizes -----------------------------------------------------------------------


def test_of_equal_ages_those_in_service_stay() -> None:
    jobs = [Job(0, 50.0, 3.0, 3.0), Job(1, 50.0, 2.0, 2.0, served=True), Job(2, 50.0, 1.0, 1.0)]
    for name in ("fcfs", "plcfs", "lcfs"):
        agent = agent_of(name, 1)
        rates, _ = agent.predict(observation(agent.layout, [Crowd(jobs)]))
        assert rates[0, :3].tolist() == [0.0, 1.0, 0.0], name
    nobody = [Job(0, 50.0, 3.0, 3.0), Job(1, 50.0, 3.0, 3.0), Job(2, 50.0, 3.0, 3.0)]
    for name in ("fcfs", "lcfs", "plcfs", "psjf", "sjf"):
        agent = agent_of(name, 1)
        rates, _ = agent.predict(observation(agent.layout, [Crowd(nobody)]))
        assert np.flatnonzero(rates[0]).tolist() == [0], name


@pytest.mark.parametrize("view", ["flat", "dict"])
@pytest.mark.parametrize("name", ["fcfs", "lcfs", "plcfs", "ps"])
def test_policies_that_are_blind_to_sizes_work_without_them(name: str, view: str) -> None:
    agent = agent_of(name, 3, observation=view, size_knowledge="unknown")
    jobs = crowds(3, 0, agent.layout.slots)
    rates, _ = agent.predict(observation(agent.layout, jobs))
    np.testing.assert_array_equal(rates, lawful_rows(name, agent.layout, jobs))


@pytest.mark.parametrize("name", ["fcfs", "plcfs"])
def test_the_order_of_arrival_is_shown_where_sizes_are_hidden(name: str) -> None:
    agent = agent_of(name, 3, size_knowledge="unknown", slots=9)
    jobs = crowds(3, 10, 30)
    rates, _ = agent.predict(observation(agent.layout, jobs))
    np.testing.assert_array_equal(rates, lawful_rows(name, agent.layout, jobs))


def test_the_newest_job_is_always_shown() -> None:
    agent = agent_of("plcfs", 1, slots=5)
    jobs = crowds(1, 6, 30)
    rates, _ = agent.predict(observation(agent.layout, jobs))
    np.testing.assert_array_equal(rates, lawful_rows("plcfs", agent.layout, jobs))


# ---- the protocol --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("action", "view"),
    [
        *product(["allocation", "priority", "anchor", "rule"], ["flat", "dict"]),
        *product(["anchor", "rule"], ["compact"]),
    ],
)
def test_a_single_observation_gives_a_single_action(action: str, view: str) -> None:
    agent = agent_of("srpt", action=action, observation=view)
    shown = shown_by(agent.layout, crowds(2, 3, 9, count=5))
    whole, _ = agent.predict(shown.whole, deterministic=False, episode_start=np.ones(5, bool))
    one, state = agent.predict(shown.first)
    assert state is None
    assert np.shape(one) == agent.actions.space().shape
    if action == "rule":
        assert (type(one), whole.dtype, whole.tolist()) == (int, np.int64, [agent.config.rules.index("srpt")] * 5)
    else:
        np.testing.assert_array_equal(one, whole[0])


@pytest.mark.parametrize("action", ["allocation", "anchor"])
def test_symmetric_actions(action: str) -> None:
    plain = agent_of("dynasplit", action=action)
    scaled = agent_of("dynasplit", action=action, symmetric_actions=True)
    shown = observation(plain.layout, crowds(2, 0, 16))
    rates, actions = plain.predict(shown)[0], scaled.predict(shown)[0]
    assert (actions.min() >= -1, actions.max()) == (True, 1.0)
    np.testing.assert_allclose((actions + 1) / 2, rates, atol=2e-16)


# ---- rules ---------------------------------------------------------------------------------------


def test_rules_are_found_by_what_they_mean() -> None:
    env = stub(action="rule", rules=["fcfs", "dynasplit:shape=0.5,margin=power", "dynasplit:margin=log", "las"])
    nobody = shown_by(env.layout, [Crowd([])]).first
    spare = f"dynasplit:shape=2,delta={env.config.spare!r}"
    for label, index in (("dynasplit:margin=power,shape=.5", 1), (spare, 2), ("dynasplit", 2), ("las", 3)):
        assert make_agent(label, env).predict(nobody) == (index, None)
    for label in ("srpt", "dynasplit:shape=2.5"):
        with pytest.raises(
            ValueError,
            match=rf"{label}: the environment's rules must hold it, got fcfs, dynasplit:.*, "
            rf"las; make the environment with rules=\['{label}', ...\]",
        ):
            make_agent(label, env)


def test_all_rules_have_agents() -> None:
    env = stub(action="rule", observation="compact")
    assert set(env.config.rules) == set(AGENTS) - {"two-class"}  # the load is below one
    for name in env.config.rules:
        assert env.config.rules[make_agent(name, env).predict(np.zeros(env.layout.entries))[0]] == name


# ---- what is refused -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("label", "arguments", "message"),
    [
        ("las", {}, "las: action must be 'rule', for its rates change between decisions, where a job .*'allocation'"),
        ("backlog-split", {"action": "anchor"}, "backlog-split: action must be 'rule', for its rates change between"),
        ("ps", {"action": "priority"}, "ps: action must be 'allocation' or 'rule', got 'priority'"),
        ("fcfs", {"action": "anchor"}, "fcfs: action must be .*'priority' or 'rule' or 'threshold', got 'anchor'"),
        ("thresh-split", {}, "work_conserving must be False, for the policy leaves servers idle on purpose, got True"),
        ("psjf", {"size_knowledge": "unknown"}, "psjf: size_knowledge must be 'known', for the policy looks at sizes"),
        ("super-server", {"action": "rule"}, "no agent, for it is one server of speed n, .* got 'super-server'"),
        ("loss-priority:tau=1", {}, "loss-priority has no agent, for it turns jobs away, .* got 'loss-priority:tau=1'"),
        ("srtp", {}, "policy='srtp' is not known; did you mean 'srpt'"),
        ("dynasplit:shape=1", {}, "dynasplit: shape=1, allowed: at least 2"),
    ],
)
def test_what_cannot_be_expressed_is_refused(label: str, arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make_agent(label, stub(**arguments))


def test_policies_of_other_classes_are_refused() -> None:
    with pytest.raises(ValueError, match="SRPT: policy must be 'srpt', with parameters or without, got 'fcfs'"):
        SRPT(stub(), "fcfs")
    with pytest.raises(ValueError, match=r"make_agent: policy must be one of .*, not a policy of your own, got 'mine'"):
        make_agent(index_policy(lambda size, remaining, number, parameters: size, name="mine"), stub())
    assert SRPT(stub()).label == "srpt"


def test_the_compact_view_shows_no_table() -> None:
    env = stub()
    env.layout = stub(action="anchor", observation="compact").layout
    with pytest.raises(ValueError, match="srpt: observation must be 'flat' or 'dict' with action='allocation'"):
        make_agent("srpt", env)


@pytest.mark.parametrize("name", ["psjf", "sjf", "lcfs", "plcfs", "ps", "thresh-split"])
def test_policies_refuse_to_guess_what_the_table_does_not_show(name: str) -> None:
    agent = agent_of(name)
    few, many = crowds(2, 0, 16, count=5), crowds(2, 21, 21, count=1)
    agent.predict(observation(agent.layout, few))
    message = rf"{name}.*: slots must be at least N=21, .* K rows .* with slots=21 or more, got 16"
    with pytest.raises(ValueError, match=message):
        agent.predict(observation(agent.layout, few + many))


def test_srpt_refuses_a_table_that_is_too_short() -> None:
    agent = agent_of("srpt", 6, action="anchor", slots=14)
    with pytest.raises(ValueError, match=r"srpt: slots must be at least N=30, .*, got 14"):
        agent.predict(observation(agent.layout, crowds(6, 30, 30, count=1)))
    agent.predict(observation(agent.layout, crowds(6, 14, 14, count=1)))


def test_observations_of_another_environment_are_refused() -> None:
    for action in ("allocation", "rule"):
        agent = agent_of("srpt", action=action, observation="flat")
        with pytest.raises(ValueError, match=r"observation: shape must be \(133,\) or \(B, 133\), got \(150,\)"):
            agent.predict(np.zeros(150))
