"""The simulator against the theory of impatient jobs: Erlang A, other laws of patience, and the limits of overload.

About 270 intervals at 99.9 % (see `tests.intervals`), of median half-width 1.1 %. The number in system of M/M/n+M is
the same chain whenever the clocks run at a total speed of (N-n)^+: under fcfs, lcfs and plcfs with the clock that runs
in queue, and under ps and las with the one that runs at speed 1 - rate.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import pytest
from scipy import integrate

from queue_env import Law, Result, Scenario, theory
from queue_env.distributions import law
from queue_env.tail import Interval
from tests.intervals import LEVEL, check, check_interval, check_share, mean_over, queue, records, run

UNIT = law({"law": "exponential", "mean": 1.0})
PATIENCE = law({"law": "exponential", "mean": 2.0})
THETA = 0.5
PATIENCES = {
    "deterministic": law({"law": "deterministic", "value": 1.0}),
    "weibull": law({"law": "weibull", "shape": 0.4, "mean": 1.0}),
    "uniform": law({"law": "uniform", "low": 0.0, "high": 2.0}),
    "pareto": law({"law": "pareto", "alpha": 1.5, "mean": 1.0}),
}
SIZES = {
    "exponential": UNIT,
    "weibull": law({"law": "weibull", "shape": 0.5, "mean": 1.0}),
    "pareto": law({"law": "pareto", "alpha": 2.5, "mean": 1.0}),
}
IN_QUEUE = ("fcfs", "lcfs", "plcfs")


def warmup(scenario: Scenario) -> int:
    """Jobs until the start in an empty system is forgotten: it is by e^{-min(μ,θ)t} where jobs leave alone."""
    return int(20.0 * scenario.arrival_rate) + 1000


# ---- exponential patience ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("servers", "load", "jobs"),
    [
        (1, 0.7, 1_000_000),
        (1, 1.0, 1_000_000),
        (1, 1.5, 1_000_000),
        (10, 0.7, 2_000_000),
        (10, 1.0, 1_000_000),
        (10, 1.5, 1_000_000),
        (100, 1.0, 3_000_000),
        (100, 1.2, 1_000_000),
        (100, 1.5, 1_000_000),
        (1000, 1.1, 2_000_000),
        (1000, 1.5, 1_000_000),
    ],
)
def test_erlang_a(servers: int, load: float, jobs: int) -> None:
    exact = theory.erlang_a(load * servers, 1.0, servers, THETA)
    scenario = queue(UNIT, load, servers, patience=PATIENCE)
    results = run(scenario, IN_QUEUE, jobs, seed=1, warmup=warmup(scenario))
    for policy, result in results.items():
        check_chain(result, exact, 0.06)
        check(result, "mean_waiting", exact.mean_waiting, 0.06)
        if policy != "plcfs":
            check_share(result, "waited_fraction", exact.waits, 0.03)


def test_erlang_a_of_ten_thousand_servers() -> None:
    """Few streams, since each has a long warm-up."""
    exact = theory.erlang_a(11_000.0, 1.0, 10_000, THETA)
    scenario = queue(UNIT, 1.1, 10_000, patience=PATIENCE)
    results = run(scenario, ("fcfs", "plcfs"), 1_000_000, seed=1, warmup=warmup(scenario), streams=10)
    for result in results.values():
        check_chain(result, exact, 0.1)
        check(result, "mean_waiting", exact.mean_waiting, 0.1)


@pytest.mark.parametrize(("servers", "load"), [(1, 0.7), (1, 1.5), (10, 1.0), (10, 1.5), (100, 1.1)])
def test_erlang_a_with_clocks_that_run_by_the_missing_rate(servers: int, load: float) -> None:
    scenario = queue(UNIT, load, servers, patience=PATIENCE, clock="fractional")
    policies = ("ps", "las") if servers < 100 else ("ps",)
    exact = theory.erlang_a(load * servers, 1.0, servers, THETA)
    for result in run(scenario, policies, 1_000_000, seed=2, warmup=warmup(scenario)).values():
        check_chain(result, exact, 0.06)


def check_chain(result: Result, exact: theory.ErlangA, width: float) -> None:
    """Check what follows from the law of the number in system alone."""
    check(result, "abandonment", exact.abandonment, width)
    check(result, "mean_number", exact.mean_number, 0.02)
    check_share(result, "utilisation", result.load * (1.0 - exact.abandonment), 0.02)


def test_nobody_waits_for_a_thousand_servers_at_moderate_load() -> None:
    exact = theory.erlang_a(700.0, 1.0, 1000, THETA)
    assert exact.waits < 1e-20
    scenario = queue(UNIT, 0.7, 1000, patience=PATIENCE)
    for result in run(scenario, IN_QUEUE, 1_000_000, seed=3, warmup=warmup(scenario)).values():
        assert result.waited_fraction == result.abandonment == result.mean_waiting == 0.0
        check(result, "mean_number", 700.0, 0.01)


@pytest.mark.parametrize(("servers", "load"), [(1, 1.0), (10, 0.9), (100, 1.2)])
def test_waiting_of_served_and_of_abandoned_jobs(servers: int, load: float) -> None:
    exact = theory.erlang_a(load * servers, 1.0, servers, THETA)
    jobs = records(queue(UNIT, load, servers, patience=PATIENCE), ["fcfs"], 1_500_000, seed=4)["fcfs"]
    waiting, abandoned = jobs["waiting_time"], jobs["outcome"] == 1
    check_interval(mean_over(waiting, ~abandoned), exact.mean_waiting_served, 0.05, "served")
    check_interval(mean_over(waiting, abandoned), exact.mean_waiting_abandoned, 0.05, "abandoned")


@pytest.mark.parametrize(("servers", "load"), [(1, 0.8), (5, 1.2), (50, 1.5)])
def test_clocks_that_never_stand(servers: int, load: float) -> None:
    """N is a chain of death rates min(k,n)μ + kθ under every policy that is blind to sizes: P[abandon] = θE[N]/λ."""
    rate = load * servers
    states = np.arange(1.0, 20.0 * servers + 50.0)
    deaths = np.minimum(states, servers) + states * THETA
    weights = np.exp(np.cumsum(np.log(rate / deaths)))
    number = float(states @ weights) / (1.0 + float(weights.sum()))
    scenario = queue(UNIT, load, servers, patience=PATIENCE, clock="sojourn")
    for result in run(scenario, ("fcfs", "lcfs", "plcfs", "ps", "las"), 600_000, seed=5).values():
        check(result, "mean_number", number, 0.02)
        check(result, "abandonment", THETA * number / rate, 0.02)


# ---- other laws of patience -------------------------------------------------------------------------------


class Delay(NamedTuple):
    """Exact measures of M/M/n+GI under fcfs."""

    waits: float
    abandonment: float
    mean_waiting: float


def delay_with_patience(rate: float, servers: int, patience: Law) -> Delay:
    """M/M/n+GI with μ = 1, by integrals over the density of the virtual wait, λπ_{n-1}·e^{λH(x)-nx}.

    H(x) = E[min(patience, x)], and E = Σ_{k<n} π_k / π_{n-1} = (1/B(n,λ) - 1)·λ/n by Erlang's B.

    Source: Zeltyn and Mandelbaum, "Call centers with impatient customers: many-server asymptotics of the M/M/n+G
        queue" (2005), section 3; Baccelli and Hebuterne, "On queues with impatient customers" (1981).
    """

    def kept(x: float) -> float:
        return float(patience.truncated_mean(x)) + x * float(patience.tail(x))

    def density(x: float) -> float:
        return math.exp(rate * kept(x) - servers * x)

    def integral(function: Callable[[float], float]) -> float:
        edges = [0.0, *np.geomspace(1e-6, 100.0, 41)]
        return float(sum(integrate.quad(function, *ends)[0] for ends in itertools.pairwise(edges)))

    wait, kept_wait = integral(density), integral(lambda x: kept(x) * density(x))
    total = (1.0 / theory.erlang_b(servers, rate) - 1.0) * rate / servers + rate * wait
    return Delay(
        waits=rate * wait / total,
        abandonment=(1.0 + (rate - servers) * wait) / total,
        mean_waiting=rate * kept_wait / total,
    )


def test_delay_with_patience_contains_erlang_a() -> None:
    exact = theory.erlang_a(12.0, 1.0, 10, THETA)
    delay = delay_with_patience(12.0, 10, PATIENCE)
    assert delay == pytest.approx((exact.waits, exact.abandonment, exact.mean_waiting), rel=1e-7)


@pytest.mark.parametrize(("servers", "load"), [(1, 0.8), (10, 1.0), (10, 1.4), (50, 1.2)])
@pytest.mark.parametrize("name", PATIENCES)
def test_other_laws_of_patience(name: str, servers: int, load: float) -> None:
    exact = delay_with_patience(load * servers, servers, PATIENCES[name])
    result = run(queue(UNIT, load, servers, patience=PATIENCES[name]), ["fcfs"], 2_000_000, seed=6)["fcfs"]
    check(result, "waited_fraction", exact.waits, 0.03)
    check(result, "abandonment", exact.abandonment, 0.06)
    check(result, "mean_waiting", exact.mean_waiting, 0.06)


# ---- limits of overload -----------------------------------------------------------------------------------

SERVERS = 1000
LIMIT = 0.02
"""Distance from the limit allowed at 1000 servers; the gaps of throughput are of order 1/n or 1/√n."""


@pytest.mark.parametrize("load", [1.2, 1.5])
@pytest.mark.parametrize("name", SIZES)
def test_throughput_is_near_its_limit(name: str, load: float) -> None:
    sizes, patience = SIZES[name], PATIENCES["weibull"]
    scenario = queue(sizes, load, SERVERS, patience=patience)
    results = run(scenario, ["fcfs", "srpt"], 800_000, seed=7, warmup=warmup(scenario))
    limits = {"fcfs": theory.fcfs_limit(load, patience), "srpt": theory.srpt_limit(load, sizes, patience)}
    for policy, limit in limits.items():
        served = results[policy].interval("throughput", LEVEL)
        near(served, limit.throughput * scenario.arrival_rate, LIMIT)


@pytest.mark.parametrize("name", ["deterministic", "uniform", "pareto"])
def test_waiting_in_order_of_arrival_is_near_its_limit(name: str) -> None:
    load, patience = 1.5, PATIENCES[name]
    limit = theory.fcfs_limit(load, patience).mean_waiting
    scenario = queue(UNIT, load, SERVERS, patience=patience)
    result = run(scenario, ["fcfs"], 1_000_000, seed=8, warmup=warmup(scenario))["fcfs"]
    assert limit is not None
    near(result.interval("mean_waiting", LEVEL), limit, LIMIT)


@pytest.mark.parametrize("patience", [PATIENCE, PATIENCES["uniform"]], ids=["exponential", "uniform"])
def test_waiting_of_the_latest_first_is_near_its_limit(patience: Law) -> None:
    limit = theory.lcfs_limit(1.5, patience).mean_waiting
    scenario = queue(UNIT, 1.5, SERVERS, patience=patience)
    result = run(scenario, ["lcfs"], 1_000_000, seed=9, warmup=warmup(scenario))["lcfs"]
    assert limit is not None
    near(result.interval("mean_waiting", LEVEL), limit, LIMIT)


def near(interval: Interval, limit: float, distance: float) -> None:
    """Check that a 99.9 % interval, itself of half-width 3 % or less, comes as near to a limit."""
    assert interval.half_width < 0.03 * limit
    assert interval.low - distance * limit < limit < interval.high + distance * limit
