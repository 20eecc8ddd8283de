"""The action `threshold` against the slow simulator, against compiled policies, and against the limits of theory."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain, repeat
from typing import Any

import gymnasium
import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from baselines import make_agent
from queue_env import QueueEnv, QueueVectorEnv, Workload, simulate
from queue_env.distributions import law
from queue_env.registration import IDS
from queue_env.reward import job_costs
from queue_env.rules import parse_policy
from queue_env.scenarios import CLOCKS, scenario
from queue_env.scoring.agent_blocks import AgentBlocks, agent_policy
from queue_env.scoring.strata import make_strata
from queue_env.settings import set_up
from tests.reference import simulate as slowly
from tests.reference.state import PRESENT
from tests.reference.two_classes import Held, TwoClasses, held
from tests.strategies import Workload as Jobs
from tests.strategies import workloads

EXPONENTIAL = {"law": "exponential", "mean": 1.0}
INTERVAL = 0.71317


def environment(servers: int, clock: str | None, *, known: bool = True, **arguments: Any) -> QueueEnv:
    scenario = {"servers": servers, "load": 0.9, "sizes": EXPONENTIAL}
    if clock is not None:
        scenario |= {"patience": EXPONENTIAL, "clock": clock}
    return QueueEnv(
        scenario,
        action="threshold",
        size_knowledge="known" if known else "unknown",
        reward={"wait": 1.0, "abandon": 1.0, "mean": 1.0, "slowdown": 1.0},
        records=True,
        capacity=1000,
        **arguments,
    )


def changing(rng: np.random.Generator, kind: str) -> Iterator[tuple[float, float]]:
    """Shares and orders: the ends, a few values in turn, anything, or one value throughout."""
    fixed = rng.random(2)
    while True:
        if kind == "ends":
            yield float(rng.integers(2)), float(rng.integers(2))
        elif kind == "few":
            yield float(rng.choice([0.0, 0.3, 0.6, 0.9, 1.0])), float(rng.choice([0.0, 0.25, 0.5, 0.8, 1.0]))
        elif kind == "any":
            yield float(rng.random()), float(rng.random())
        else:
            yield float(fixed[0]), float(fixed[1])


def play(env: QueueEnv, jobs: Jobs, actions: Iterator[tuple[float, float]]) -> np.ndarray[Any, Any]:
    env.reset(seed=0, options={"workload": Workload(jobs.arrival_times, jobs.sizes, jobs.patience)})
    over = False
    while not over:
        *_, terminated, truncated, _ = env.step(np.array(next(actions)))
        over = terminated or truncated
    return env.records()


@settings(max_examples=200, deadline=None, derandomize=True)
@given(
    jobs=workloads(30),
    clock=st.sampled_from(CLOCKS),
    known=st.booleans(),
    interval=st.sampled_from([None, INTERVAL]),
    kind=st.sampled_from(["ends", "few", "any", "fixed"]),
    seed=st.integers(0, 1000),
)
def test_as_the_slow_simulator(
    jobs: Jobs, clock: str, known: bool, interval: float | None, kind: str, seed: int
) -> None:
    def actions() -> Iterator[tuple[float, float]]:
        return changing(np.random.default_rng(seed), kind)

    def meant() -> Iterator[Held]:
        return (held(share, order, mean=1.0, known=known) for share, order in actions())

    assume(interval is None or jobs.arrival_times[-1] + sum(jobs.sizes) < 1000)
    rule = TwoClasses(meant(), interval, known=known)
    slow = slowly(
        jobs.arrival_times, jobs.sizes, rule, jobs.servers, patience=jobs.patience, clock=clock,
        horizon=None if interval is None else max(jobs.arrival_times) + sum(jobs.sizes) + 1,
    )  # fmt: skip
    assume(slow.well_conditioned())
    env = environment(jobs.servers, None if jobs.patience is None else clock, known=known, decision_interval=interval)
    records = play(env, jobs, actions())
    expected = slow.arrays()
    np.testing.assert_array_equal(records["outcome"], expected["outcomes"])
    gone = records["outcome"] != PRESENT
    for name in ("start_time", "departure_time", "waiting_time"):
        np.testing.assert_allclose(records[name][gone], expected[f"{name}s"][gone], rtol=1e-9, atol=1e-9, err_msg=name)


def test_two_jobs_lose_their_priority_at_one_instant() -> None:
    """Then the later one yields, and not the one that is looked at first."""
    level = -float(np.log1p(-0.5))
    jobs = Jobs((0.0, 0.0, 0.25), (1.0, 1.0, 0.125), None, 2, False)
    records = play(environment(2, None, known=False), jobs, repeat((0.5, 0.0)))
    np.testing.assert_allclose(records["departure_time"], [1.0, 1.125, level + 0.125], rtol=1e-12)


def test_who_finishes_at_the_instant_of_a_decision_holds_no_server() -> None:
    """Three finish at once. After the first of them two servers go to jobs with priority, and the last to another."""
    arrivals, sizes = (0.0, 0.0, 0.0, 0.1, 0.2, 0.3, 0.4), (0.5, 0.5, 0.5, 0.25, 0.25, 0.75, 0.75)
    first = float(-np.expm1(-0.3))
    actions = chain(repeat((0.0, 0.0), 7), [(first, 0.0)], repeat((0.0, 1.0)))
    records = play(environment(3, None), Jobs(arrivals, sizes, None, 3, True), actions)
    np.testing.assert_array_equal(records["start_time"], [0.0, 0.0, 0.0, 0.5, 0.5, 0.75, 0.5])


# ---- agents ----------------------------------------------------------------------------------------------


def crowded(servers: int, clock: str | None, count: int = 400) -> Workload:
    """Jobs at load 0.8, the last third of which arrive twenty times as fast, some of them in batches."""
    rng = np.random.default_rng(7)
    gaps = rng.exponential(1 / (0.8 * servers), count) * np.where(np.arange(count) % 3 > 0, 1.0, 0.0)
    gaps[count * 2 // 3 :] /= 20
    patience = None if clock is None else rng.exponential(2.0, count)
    return Workload(np.cumsum(gaps), rng.exponential(1.0, count), patience)


def records_of(env: QueueEnv, policy: str, workload: Workload) -> np.ndarray[Any, Any]:
    agent = make_agent(policy, env)
    observation, _ = env.reset(seed=0, options={"workload": workload})
    over = False
    while not over:
        action, _ = agent.predict(observation)
        assert env.action_space.contains(np.asarray(action, np.float32))
        observation, _, terminated, truncated, _ = env.step(action)
        over = terminated or truncated
    return env.records()


@pytest.mark.parametrize("clock", [None, *CLOCKS])
@pytest.mark.parametrize("servers", [1, 2, 5, 40])
@pytest.mark.parametrize("policy", ["fcfs", "lcfs", "two-class:tau=0.7", "two-class:tau=1e9"])
def test_agents_are_the_compiled_policies(policy: str, servers: int, clock: str | None) -> None:
    workload = crowded(servers, clock)
    compiled = simulate(workload, policy, servers=servers, records=True, clock=clock).records
    assert compiled is not None
    blind = policy in ("fcfs", "lcfs")
    for known, symmetric in ((True, False), (True, True), *(((False, False),) if blind else ())):
        env = environment(servers, clock, known=known, symmetric_actions=symmetric)
        records = records_of(env, policy, workload)
        np.testing.assert_array_equal(records["outcome"], compiled["outcome"])
        for name in ("start_time", "departure_time", "waiting_time"):
            np.testing.assert_allclose(records[name], compiled[name], rtol=0, atol=1e-9, err_msg=name)


@pytest.mark.parametrize("clock", CLOCKS)
@pytest.mark.parametrize(("share", "policy"), [(0.0, "fcfs"), (1.0, "fcfs")])
def test_everybody_with_priority_is_nobody_with_priority(share: float, policy: str, clock: str) -> None:
    workload = crowded(3, clock)
    compiled = simulate(workload, policy, servers=3, records=True, clock=clock).records
    assert compiled is not None
    for known in (True, False):
        found = play(environment(3, clock, known=known), Jobs(*columns(workload), 3, False), repeat((share, 0.0)))
        np.testing.assert_allclose(found["departure_time"], compiled["departure_time"], rtol=0, atol=1e-9)


def columns(workload: Workload) -> tuple[Any, Any, Any]:
    return workload.arrival_times, workload.sizes, workload.patience


def test_an_agent_acts_for_a_batch() -> None:
    envs = QueueVectorEnv(3, scenario="impatient-100", action="threshold", symmetric_actions=True)
    agent = make_agent("two-class", envs)
    actions, _ = agent.predict(envs.reset(seed=0)[0])
    setting = set_up(parse_policy("two-class"), 100, -20.0, envs.config.scenario.sizes)
    share = -np.expm1(-setting.parameters[0])
    np.testing.assert_allclose(actions, [[2 * share - 1, -1.0]] * 3, rtol=1e-12)
    assert envs.action_space.contains(actions.astype(np.float32))
    with pytest.raises(ValueError, match="known"):
        make_agent("two-class", QueueEnv("impatient-100", action="threshold", size_knowledge="unknown"))
    with pytest.raises(ValueError, match="srpt: action must be"):
        make_agent("srpt", envs)


# ---- limits ----------------------------------------------------------------------------------------------

WARM, LENGTH, SYSTEMS = 10, 20, 4


def throughput(policy: str, scenario: dict[str, Any]) -> float:
    """Jobs served a job that arrived, in some systems side by side that have filled up."""
    envs = QueueVectorEnv(SYSTEMS, scenario=scenario, action="threshold", episode="horizon", decision_interval=1.0)
    agent = make_agent(policy, envs)
    observations, _ = envs.reset(seed=3)
    served = arrived = 0.0
    for i in range(WARM + LENGTH):
        observations, *_, infos = envs.step(agent.predict(observations)[0])
        if i >= WARM:
            served += infos["completions"].sum()
            arrived += envs.layout.read(observations).arrivals.sum()  # type: ignore[union-attr]
    envs.close()
    return float(served / arrived)


@pytest.mark.parametrize("size", [{"law": "exponential", "mean": 1.0}, {"law": "weibull", "shape": 0.5, "mean": 1.0}])
@pytest.mark.parametrize("load", [1.2, 1.5])
def test_with_many_servers_the_throughput_is_that_of_the_limit(size: dict[str, Any], load: float) -> None:
    """Theorem 2 and Proposition 3 of [I]: P[S <= tau] of the arrivals by two classes, 1/load by blind policies.

    What is missing to the limit is of the order of 1/sqrt(n): 2 to 3 % with a thousand servers.
    """
    patience = {"law": "weibull", "shape": 0.4, "mean": 1.0}
    scenario = {"servers": 4000, "load": load, "sizes": size, "patience": patience}
    sizes = law(size)
    tau = set_up(parse_policy("two-class"), 4000, 4000 * (1 - load), sizes).parameters[0]
    limit = float(sizes.cdf(tau))
    assert throughput("two-class", scenario) == pytest.approx(limit, rel=0.02)
    assert limit - throughput("two-class", scenario | {"servers": 250}) > 0.02
    for blind in ("fcfs", "lcfs"):
        assert throughput(blind, scenario) == pytest.approx(1 / load, rel=0.02)


# ---- scores ----------------------------------------------------------------------------------------------


def test_blocks_of_an_agent_are_those_of_the_same_policy_as_a_rule() -> None:
    """What scores are made of: the same jobs, states and counts, whether the order is a rule or a threshold."""
    model = scenario({"servers": 2, "load": 0.8, "sizes": EXPONENTIAL})
    found = []
    for arguments in ({"action": "rule", "rules": ["fcfs"]}, {"action": "threshold"}):
        agent = make_agent("fcfs", QueueVectorEnv(1, scenario=model, **arguments))
        blocks = AgentBlocks(
            model,
            agent_policy(agent, label="fcfs", **arguments),
            make_strata(model.sizes, 4.0),
            np.array([0.0, 1.0, 3.0, 10.0]),
            level=2,
            warmup=200,
            segment=128 * 40,
            snapshots=64,
            columns=np.eye(4),
        )
        counts = np.minimum(3.0, np.ones(len(blocks.probabilities)))
        found.append(blocks.replicate(np.random.SeedSequence(5), counts).totals)
    np.testing.assert_allclose(found[1], found[0], rtol=1e-9, atol=1e-9)
    assert found[0].sum() > 0


# ---- rewards ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize("clock", CLOCKS)
@pytest.mark.parametrize("interval", [None, INTERVAL])
def test_costs_are_those_of_the_records(interval: float | None, clock: str, known: bool) -> None:
    weights = {"wait": 2.0, "abandon": 3.0, "mean": 0.5, "slowdown": 0.1, "moment(2)": 0.1, "exceed(1.5)": 1.0}
    scenario = {"servers": 3, "load": 1.4, "sizes": EXPONENTIAL, "patience": EXPONENTIAL, "clock": clock}
    env = QueueEnv(
        scenario, action="threshold", reward=weights, jobs=200, records=True, decision_interval=interval,
        size_knowledge="known" if known else "unknown",
    )  # fmt: skip
    rng = np.random.default_rng(5)
    env.reset(seed=2)
    total, charged, over = 0.0, dict.fromkeys(weights, 0.0), False
    while not over:
        _, paid, terminated, truncated, info = env.step(rng.random(2))
        total += paid
        charged = {name: charged[name] + info["cost"][name] for name in weights}
        over = terminated or truncated
    records, saved = env.records(), env.snapshot()
    present = records["outcome"] == PRESENT
    waiting = records["waiting_time"].copy()
    waiting[present] = saved.ages - saved.jobs["busy_time"]
    costs = job_costs(
        env.config.terms,
        ages=np.where(present, info["time"], records["departure_time"]) - records["arrival_time"],
        sizes=records["size"],
        waiting=waiting,
        abandoned=records["outcome"] == 1,
        tail=None,
    ).sum(axis=1)
    assert list(charged.values()) == pytest.approx(costs.tolist(), rel=1e-9)
    assert total == pytest.approx(-float(np.dot(list(weights.values()), costs)), rel=1e-9)
    assert charged["abandon"] > 0


# ---- what is asked for -----------------------------------------------------------------------------------


@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize("symmetric", [True, False])
def test_numbers_out_of_range_are_those_at_its_ends(known: bool, symmetric: bool) -> None:
    low = -1.0 if symmetric else 0.0
    wild = [(-np.inf, 1e300), (7.0, -3.0), (np.inf, np.inf), (-1e308, 1.7e308)]
    tame = [(low, 1.0), (1.0, low), (1.0, 1.0), (low, 1.0)]
    found = []
    for pairs in (wild, tame):
        env = environment(2, "queue", known=known, symmetric_actions=symmetric, jobs=300)
        env.reset(seed=4)
        found.append([env.step(np.array(pairs[i % 4]))[:2] for i in range(200)])
    for (one, paid), (other, due) in zip(*found, strict=True):
        np.testing.assert_array_equal(one, other)
        assert paid == due


@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize("action", [(np.nan, 0.5), (0.5, np.nan)])
def test_nan_is_refused_and_changes_nothing(action: tuple[float, float], known: bool) -> None:
    env, twin = (environment(2, "queue", known=known) for _ in range(2))
    for one in (env, twin):
        one.reset(seed=4)
        for _ in range(30):
            one.step(np.array([0.6, 0.4]))
    with pytest.raises(ValueError, match=r"step: action\[[01]\] must be a number, not NaN"):
        env.step(np.array(action))
    for _ in range(30):
        np.testing.assert_array_equal(env.step(np.array([0.3, 0.9]))[0], twin.step(np.array([0.3, 0.9]))[0])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"observation": "flat"}, "observation must be summary with action='threshold', got 'flat'"),
        ({"action": "rule", "observation": "summary"}, "observation must be flat or dict with action='rule'"),
        ({"slots": 16}, "slots must be None unless action is another than 'threshold', which has no job table"),
        ({"allocation_in_info": True}, "allocation_in_info must be False with observation='summary'"),
        ({"work_conserving": False}, "work_conserving must be True unless action='allocation' or 'anchor'"),
    ],
)
def test_arguments_that_do_not_go_with_it(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        QueueEnv(**{"action": "threshold"} | arguments)


@pytest.mark.parametrize("name", [name for name, scenario in IDS.items() if "impatient" in scenario])
@pytest.mark.parametrize("size_knowledge", ["known", "unknown"])
def test_thousands_of_servers(name: str, size_knowledge: str) -> None:
    env = gymnasium.make(
        name, overrides={"servers": 3000}, action="threshold", size_knowledge=size_knowledge, jobs=10**6,
        decision_interval=0.5,
    )  # fmt: skip
    observation, _ = env.reset(seed=0)
    rng = np.random.default_rng(0)
    for _ in range(12):
        observation, reward, *_ = env.step(rng.random(2))
        assert env.observation_space.contains(observation)
    assert env.unwrapped.layout.read(observation).busy.item() == 1.0  # type: ignore[attr-defined]
    assert reward < 0


# ---- snapshots of other actions ------------------------------------------------------------------------------


@pytest.mark.parametrize("clock", CLOCKS)
@pytest.mark.parametrize("rule", ["ps", "srpt"])
def test_snapshots_go_from_action_to_action(rule: str, clock: str) -> None:
    scenario = {"servers": 3, "load": 1.3, "sizes": EXPONENTIAL, "patience": EXPONENTIAL, "clock": clock}
    shared: dict[str, Any] = {"reward": "wait", "jobs": 1000, "records": True}
    ruled = QueueEnv(scenario, action="rule", rules=[rule], **shared)
    known, blind = (
        QueueEnv(scenario, action="threshold", size_knowledge=size_knowledge, **shared)
        for size_knowledge in ("known", "unknown")
    )
    ruled.reset(seed=1)
    for _ in range(100):
        ruled.step(0)
    last = ruled
    for env in (known, blind, known, ruled):
        saved = last.snapshot()
        env.reset(options={"snapshot": saved})
        for name in ("size", "remaining", "attained", "patience", "busy_time", "number"):
            np.testing.assert_allclose(env.snapshot().jobs[name], saved.jobs[name], rtol=0, atol=1e-12, err_msg=name)
        for _ in range(40):
            env.step(0 if env is ruled else np.array([0.6, 0.3]))
        last = env
    assert len(last.snapshot().jobs) > 0
