"""The simulator against the closed forms of many servers without patience, by 99.9 % intervals.

About 150 intervals (see `tests.intervals`), of median half-width 1.1 %: Erlang C for exponential sizes, the
insensitivity of processor sharing and of the loss system, and the loss of class 1 in the loss system with priorities.
"""

from __future__ import annotations

import numpy as np
import pytest

from queue_env import theory
from queue_env.distributions import law
from tests.intervals import check, check_interval, mean_over, queue, records, run

EXPONENTIAL = law({"law": "exponential", "mean": 2.0})
OTHERS = {
    "deterministic": law({"law": "deterministic", "value": 1.0}),
    "hyperexponential": law({"law": "hyperexponential", "mean": 1.0, "scv": 4.0}),
    "weibull": law({"law": "weibull", "shape": 0.5, "mean": 1.0}),
    "pareto": law({"law": "pareto", "alpha": 2.2, "mean": 1.0}),
}
BLIND = ("fcfs", "lcfs", "plcfs", "ps", "las")
NON_PREEMPTIVE = ("fcfs", "lcfs")


@pytest.mark.parametrize(
    ("servers", "load", "jobs"),
    [(2, 0.5, 2_000_000), (3, 0.8, 3_000_000), (10, 0.8, 2_000_000), (100, 0.95, 3_000_000)],
)
def test_erlang_c(servers: int, load: float, jobs: int) -> None:
    scenario = queue(EXPONENTIAL, load, servers)
    rate, service = scenario.arrival_rate, 0.5
    results = run(scenario, BLIND, jobs, seed=1)
    response = theory.mmn_mean_response(rate, service, servers)
    for result in results.values():
        check(result, "mean_response", response, 0.03)
        check(result, "mean_number", rate * response, 0.03)
        check(result, "utilisation", load, 0.01)
    waiting = theory.mmn_mean_waiting(rate, service, servers)
    for policy in NON_PREEMPTIVE:
        check(results[policy], "waited_fraction", theory.erlang_c(servers, rate / service), 0.07)
        check(results[policy], "mean_waiting", waiting, 0.15)
    for t in (1.0, 4.0, 10.0):
        exact = float(theory.mmn_response_tail(rate, service, servers, t))
        check(results["fcfs"], f"tail:{t}", exact, 0.07)


@pytest.mark.parametrize(("servers", "load"), [(1, 0.7), (2, 0.8), (10, 0.8)])
def test_waiting_tail(servers: int, load: float) -> None:
    scenario = queue(EXPONENTIAL, load, servers)
    waiting = records(scenario, ["fcfs"], 3_000_000, seed=2)["fcfs"]["waiting_time"]
    every = np.ones(len(waiting), dtype=np.bool_)
    for t in (0.0, 0.5, 2.0):
        exact = float(theory.mmn_waiting_tail(scenario.arrival_rate, 0.5, servers, t))
        check_interval(mean_over(waiting > t, every), exact, 0.07, f"P[W>{t}]")


@pytest.mark.parametrize("servers", [2, 10])
@pytest.mark.parametrize("name", OTHERS)
def test_processor_sharing_is_insensitive(name: str, servers: int) -> None:
    """The slowdown has more moments than T under Pareto sizes; E[T/S] = E[T]/E[S] since E[T(x)] = x·E[T]/E[S]."""
    sizes = OTHERS[name]
    scenario = queue(sizes, 0.8, servers)
    result = run(scenario, ["ps"], 2_000_000, seed=3)["ps"]
    response = theory.mmn_mean_response(scenario.arrival_rate, 1.0 / sizes.mean, servers)
    check(result, "mean_slowdown", response / sizes.mean, 0.04)
    check(result, "mean_number", scenario.arrival_rate * response, 0.04)


@pytest.mark.parametrize(("servers", "load"), [(1, 0.5), (4, 0.9), (20, 0.8), (100, 0.95)])
@pytest.mark.parametrize("name", OTHERS)
def test_loss_system_is_insensitive(name: str, servers: int, load: float) -> None:
    """With all sizes in class 1 the system is M/G/n/n: Erlang's B is lost, and the rest never waits."""
    sizes = OTHERS[name]
    scenario = queue(sizes, load, servers)
    (result,) = run(scenario, ["loss-priority:tau=1e300"], 2_000_000, seed=14).values()
    lost = theory.erlang_b(servers, load * servers)
    check(result, "abandonment", lost, 0.09)
    check(result, "throughput", scenario.arrival_rate * (1.0 - lost), 0.02)
    assert result.mean_slowdown == pytest.approx(1.0, abs=1e-6)


@pytest.mark.parametrize("servers", [1, 10, 100])
@pytest.mark.parametrize("name", ["hyperexponential", "weibull", "pareto"])
def test_loss_of_the_first_class(name: str, servers: int) -> None:
    load, sizes = 1.4, OTHERS[name]
    scenario = queue(sizes, load, servers, patience={"law": "exponential", "mean": 1.0})
    (jobs,) = records(scenario, ["loss-priority"], 1_500_000, seed=5).values()
    first = jobs["size"] <= theory.srpt_threshold(load, sizes)
    lost = mean_over(jobs["outcome"] == 1, first)
    check_interval(lost, theory.loss_priority_class1_loss(servers), 0.07, "loss of class 1")
    assert np.mean(jobs["outcome"][~first] == 1) > lost.high
