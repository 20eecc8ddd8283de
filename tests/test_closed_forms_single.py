"""The simulator against the closed forms of one server, by 99.9 % intervals (see `tests.intervals`).

About 460 intervals: the median half-width is 1.1 %, the largest 7 %. Some laws are left out for some policies:

- Under fcfs, lcfs and sjf the waiting time has infinite variance unless E[S^3] is finite; Pareto sizes of index
  2.2 or less have no intervals there. Under plcfs a response is a whole busy period, whose tail is that of S.
- Under srpt, psjf and las the time of a job of size x depends on sizes cut at x, so T/S has all moments, whatever
  the law: slowdowns and means given the size are checked for infinite variance of S too.
- Under ps the number in system has correlations that are summable only if S has finite variance.
- Under plcfs the square of T/S behaves like 1/S for small sizes: the slowdown is checked where E[1/S] is finite.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable

import numpy as np
import pytest
from scipy.optimize import brentq

from queue_env import Law, theory
from queue_env.distributions import law
from tests.intervals import check, check_interval, mean_over, queue, records, run

LIGHT = {
    "exponential": law({"law": "exponential", "mean": 1.0}),
    "deterministic": law({"law": "deterministic", "value": 1.0}),
    "uniform": law({"law": "uniform", "low": 0.0, "high": 2.0}),
    "weibull": law({"law": "weibull", "shape": 0.5, "mean": 1.0}),
    "hyperexponential": law({"law": "hyperexponential", "mean": 1.0, "scv": 4.0}),
    "lognormal": law({"law": "lognormal", "sigma": 1.0, "mean": 2.0}),
}
"""Size laws with all moments."""

PARETO = {alpha: law({"law": "pareto", "alpha": alpha, "mean": 1.0}) for alpha in (1.5, 2.2)}
WIDTHS = dict.fromkeys(LIGHT, 0.03) | {"weibull": 0.055, "hyperexponential": 0.045}
INVERSE_MEAN_IS_FINITE = ("deterministic", "lognormal")
BLIND = ("fcfs", "lcfs")
SIZE_AWARE = ("srpt", "psjf", "las")


def exact_slowdowns(name: str) -> tuple[str, ...]:
    """The policies whose slowdown has finite variance for a law in LIGHT."""
    policies = theory.SLOWDOWN_POLICIES
    return policies if name in INVERSE_MEAN_IS_FINITE else tuple(p for p in policies if p != "plcfs")


@pytest.mark.parametrize(("load", "jobs"), [(0.4, 1_000_000), (0.7, 2_000_000)])
@pytest.mark.parametrize("name", LIGHT)
def test_means_under_every_policy(name: str, load: float, jobs: int) -> None:
    sizes = LIGHT[name]
    scenario, width = queue(sizes, load), WIDTHS[name]
    rate = scenario.arrival_rate
    results = run(scenario, theory.CONDITIONAL_RESPONSE, jobs, seed=1)
    for policy, result in results.items():
        exact = theory.mean_response(policy, rate, sizes)
        check(result, "mean_response", exact, width)
        check(result, "mean_number", rate * exact, width)
    for policy in exact_slowdowns(name):
        check(results[policy], "mean_slowdown", theory.mean_slowdown(policy, rate, sizes), width)
    check(results["fcfs"], "utilisation", load, 0.01)
    for policy in BLIND:
        check(results[policy], "mean_waiting", theory.fcfs_mean_waiting(rate, sizes), 1.2 * width)
        check(results[policy], "waited_fraction", load, 0.01)  # Poisson arrivals see time averages


@pytest.mark.parametrize("name", ["exponential", "weibull"])
def test_mean_given_size(name: str) -> None:
    check_given_size(LIGHT[name], theory.CONDITIONAL_RESPONSE)


@pytest.mark.parametrize("alpha", PARETO)
def test_mean_given_size_for_heavy_tails(alpha: float) -> None:
    check_given_size(PARETO[alpha], SIZE_AWARE)


def check_given_size(sizes: Law, policies: Iterable[str]) -> None:
    """Check that T/E[T(S)] has mean one within each of three or four ranges of sizes."""
    scenario = queue(sizes, 0.7)
    for policy, jobs in records(scenario, policies, 1_000_000, seed=12).items():
        size, response = jobs["size"], jobs["departure_time"] - jobs["arrival_time"]
        grid = np.geomspace(size.min(), size.max(), 4000)
        exact = theory.CONDITIONAL_RESPONSE[policy](scenario.arrival_rate, sizes, grid)
        ratio = response / np.interp(size, grid, exact)
        cuts = [*sizes.quantile(np.array([0.5, 0.9, 0.99])), np.inf]
        edges = cuts if policy == "plcfs" else [0.0, *cuts]
        for low, high in itertools.pairwise(edges):
            chosen = (low <= size) & (size < high)
            check_interval(mean_over(ratio, chosen), 1.0, 0.07, f"{policy}, sizes from {low} to {high}")


@pytest.mark.parametrize("load", [0.5, 0.8, 0.9])
@pytest.mark.parametrize("alpha", PARETO)
def test_slowdown_for_heavy_tails(alpha: float, load: float) -> None:
    scenario = queue(PARETO[alpha], load)
    for policy, result in run(scenario, SIZE_AWARE, 1_500_000, seed=3).items():
        exact = theory.mean_slowdown(policy, scenario.arrival_rate, scenario.sizes)
        check(result, "mean_slowdown", exact, 0.03)


@pytest.mark.parametrize("load", [0.5, 0.8])
def test_processor_sharing_for_heavy_tails(load: float) -> None:
    results = run(queue(PARETO[2.2], load), ["ps"], 3_000_000, seed=4)
    check(results["ps"], "mean_slowdown", 1.0 / (1.0 - load), 0.03)


@pytest.mark.parametrize("load", [0.5, 0.8])
def test_response_tail_of_exponential_sizes_in_order_of_arrival(load: float) -> None:
    result = run(queue(LIGHT["exponential"], load), ["fcfs"], 4_000_000, seed=5)["fcfs"]
    for t in (0.25, 1.0, 4.0, 10.0):
        check(result, f"tail:{t}", float(theory.mmn_response_tail(load, 1.0, 1, t)), 0.07)


@pytest.mark.parametrize("servers", [2, 10])
@pytest.mark.parametrize("name", ["exponential", "uniform", "weibull"])
def test_super_server_is_one_server_of_their_joint_speed(name: str, servers: int) -> None:
    sizes = LIGHT[name]
    scenario = queue(sizes, 0.8, servers)
    (result,) = run(scenario, ["super-server"], 2_000_000, seed=6).values()
    fast = sizes.scaled(1.0 / servers)
    check(result, "mean_response", theory.mean_response("srpt", scenario.arrival_rate, fast), 0.03)
    slowdown = theory.mean_slowdown("srpt", scenario.arrival_rate, fast)
    check(result, "mean_slowdown", slowdown / servers, 0.02)


def test_response_tail_of_one_fast_server() -> None:
    servers, load = 4, 0.8
    scenario = queue({"law": "exponential", "mean": 1.0 / servers}, load)
    result = run(scenario, ["fcfs"], 4_000_000, seed=7)["fcfs"]
    for t in (0.5, 2.0):
        exact = float(theory.super_server_response_tail(load * servers, 1.0, servers, t))
        check(result, f"tail:{t}", exact, 0.05)


# ---- other arrivals ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("load", [0.5, 0.8])
def test_exponential_renewal_arrivals_are_poisson(load: float) -> None:
    arrivals = {"process": "renewal", "law": {"law": "exponential", "mean": 3.0}}
    sizes = LIGHT["uniform"]
    scenario = queue(sizes, load, arrivals=arrivals)
    for policy, result in run(scenario, ["fcfs", "srpt"], 2_000_000, seed=8).items():
        exact = theory.mean_response(policy, scenario.arrival_rate, sizes)
        check(result, "mean_response", exact, 0.03)


@pytest.mark.parametrize("load", [0.5, 0.8])
def test_regular_arrivals(load: float) -> None:
    """D/M/1: P[W>0] = σ and P[T>t] = e^{-(1-σ)t}, where σ < 1 solves σ = e^{-(1-σ)/ρ}.

    Source: Kleinrock, "Queueing Systems" volume 1 (1975), section 6.4 (G/M/1).
    """
    sigma = brentq(lambda s: s - np.exp(-(1.0 - s) / load), 0.0, 1.0 - 1e-6)
    arrivals = {"process": "renewal", "law": {"law": "deterministic", "value": 1.0}}
    result = run(queue(LIGHT["exponential"], load, arrivals=arrivals), ["fcfs"], 3_000_000, seed=9)["fcfs"]
    check(result, "mean_response", 1.0 / (1.0 - sigma), 0.02)
    check(result, "waited_fraction", sigma, 0.02)
    check(result, "tail:2", float(np.exp(-2.0 * (1.0 - sigma))), 0.03)


@pytest.mark.parametrize(
    ("batch", "mean", "second_moment"),
    [
        ({"law": "fixed", "count": 3}, 3.0, 9.0),
        ({"law": "geometric", "mean": 2.5}, 2.5, 2.0 * 2.5**2 - 2.5),
    ],
    ids=["fixed", "geometric"],
)
@pytest.mark.parametrize("load", [0.5, 0.8])
def test_batch_arrivals(batch: dict[str, float], mean: float, second_moment: float, load: float) -> None:
    """M^X/M/1: E[N] = ρ(1 + E[X²]/E[X]) / (2(1-ρ)), under any policy blind to sizes.

    Source: Gross, Shortle, Thompson and Harris, "Fundamentals of Queueing Theory" (4th ed., 2008), section 3.1.
    """
    arrivals = {"process": "batch", "batch": batch, "epochs": {"process": "poisson"}}
    scenario = queue(LIGHT["exponential"], load, arrivals=arrivals)
    number = 0.5 * load * (1.0 + second_moment / mean) / (1.0 - load)
    for result in run(scenario, ["fcfs", "plcfs", "ps"], 4_000_000, seed=10).values():
        check(result, "mean_number", number, 0.04)
        check(result, "mean_response", number / load, 0.04)
