"""Many overloaded servers with impatient jobs: convergence to the limits of [I], and where SRPT is not the best.

About 110 comparisons of 99.9 % intervals (see `tests.intervals`). Distances from a limit are those of the intervals'
far ends, and fall from one number of servers to the next by more than the intervals allow for.

[I] is Dong and Ibrahim, "On the SRPT scheduling discipline in many-server queues with impatient customers" (2021).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import cache
from itertools import pairwise

import numpy as np
import pytest

from queue_env import Comparison, Law, Result, scenario, theory
from queue_env.distributions import law
from queue_env.tail import Interval
from tests.intervals import LEVEL, queue, run

SERVERS = (20, 200, 1000)
WITHIN = 0.02  # of the limit, with the most servers


def of_mean_one(name: str, **parameters: float) -> Law:
    return law({"law": name, "mean": 1.0, **parameters})


SIZES = {"exponential": of_mean_one("exponential"), "weibull": of_mean_one("weibull", shape=0.5)}
PATIENCES = {
    "exponential": of_mean_one("exponential"),
    "uniform": law({"law": "uniform", "low": 0.0, "high": 2.0}),
    "dhr": of_mean_one("weibull", shape=0.7),
    "ihr": of_mean_one("weibull", shape=2.0),
}


@cache
def srpt(sizes: str, patience: str, load: float, servers: int) -> Result:
    model = queue(SIZES[sizes], load, servers, patience=PATIENCES[patience])
    jobs = max(1_000_000, int(400 * model.arrival_rate))
    return run(model, ["srpt"], jobs, seed=1, warmup=int(30 * model.arrival_rate), streams=20)["srpt"]


def farthest(found: Interval, limit: float) -> tuple[float, float]:
    """The smallest and the largest distance from the limit that an interval allows for, relative to the limit."""
    ends = sorted((abs(found.low / limit - 1), abs(found.high / limit - 1)))
    return (0.0 if found.low <= limit <= found.high else ends[0]), ends[1]


def check_convergence(found: Callable[[int], Interval], limit: float, within: float) -> None:
    """Check that the distance falls with the number of servers, and that the last is within so much of the limit."""
    distances = [farthest(found(servers), limit) for servers in SERVERS]
    for (_, fewer), (more, _) in pairwise(distances):
        assert more < fewer
    assert distances[0][0] > distances[-1][1]
    assert distances[-1][1] < within


@pytest.mark.parametrize("patience", PATIENCES)
@pytest.mark.parametrize("sizes", SIZES)
def test_throughput_tends_to_the_share_of_small_jobs_whatever_the_patience(sizes: str, patience: str) -> None:
    """Throughput/λ → G(τ), from below: what no policy exceeds with any number of servers."""
    limit = theory.srpt_limit(1.4, SIZES[sizes], PATIENCES[patience]).throughput

    def served(servers: int) -> Interval:
        lost = srpt(sizes, patience, 1.4, servers).interval("abandonment", LEVEL)
        return Interval(1 - lost.value, 1 - lost.high, 1 - lost.low, LEVEL)

    check_convergence(served, limit, WITHIN)
    assert all(served(servers).value < limit for servers in SERVERS)


@pytest.mark.parametrize("quantity", ["abandonment", "mean_waiting"])
@pytest.mark.parametrize("sizes", SIZES)
def test_abandonment_and_waiting_tend_to_those_of_large_jobs(sizes: str, quantity: str) -> None:
    """P[abandon] → 1-G(τ), E[W] → (1-G(τ))/θ; at load 3, for the nearer to 1 it is the slower they are."""
    limit = getattr(theory.srpt_limit(3.0, SIZES[sizes], PATIENCES["exponential"]), quantity)
    check_convergence(lambda n: srpt(sizes, "exponential", 3.0, n).interval(quantity, LEVEL), limit, WITHIN)


@pytest.mark.parametrize("patience", ["uniform", "dhr", "ihr"])
def test_waiting_becomes_insensitive_to_the_patience_beyond_its_mean(patience: str) -> None:
    limit = theory.srpt_limit(3.0, SIZES["exponential"], PATIENCES[patience]).mean_waiting
    assert limit is not None
    check_convergence(lambda n: srpt("exponential", patience, 3.0, n).interval("mean_waiting", LEVEL), limit, 0.05)


@pytest.mark.parametrize("sizes", SIZES)
def test_jobs_below_the_threshold_are_served_and_those_above_are_not(sizes: str) -> None:
    tau = theory.srpt_threshold(1.4, SIZES[sizes])
    ends = [tau / 2, tau / 1.3, tau / 1.15, 1.15 * tau, 1.5 * tau, 4 * tau]
    found = [srpt(sizes, "exponential", 1.4, servers).by_size(ends, LEVEL) for servers in SERVERS]
    for fewer, more in pairwise(found):
        assert np.all(more.served[:2] > fewer.served[:2])
        assert more.served[4] <= fewer.served[4]
    last = found[-1].served
    assert last[0] > 0.98
    assert last[3] < 0.1
    assert last[4] < 1e-3


# ---- what holds with any number of servers ----------------------------------------------------------------

BLIND_AND_NOT = ("fcfs", "lcfs", "plcfs", "srpt", "psjf", "sjf", "las", "split", "loss-priority")


@cache
def all_policies(patience: str) -> Comparison:
    model = queue(SIZES["exponential"], 1.3, 10, patience=PATIENCES[patience])
    return run(model, BLIND_AND_NOT, 300_000, seed=2, streams=20)


@pytest.mark.parametrize("patience", ["exponential", "dhr"])
def test_no_policy_loses_fewer_jobs_than_the_bound(patience: str) -> None:
    """The work of the served jobs fits into n servers, so at best they are the smallest: P[abandon] >= 1-G(τ)."""
    bound = theory.srpt_limit(1.3, SIZES["exponential"], PATIENCES[patience]).abandonment
    for policy, result in all_policies(patience).items():
        assert result.interval("abandonment", LEVEL).high > bound, policy


def test_exponential_patience_ties_waiting_to_abandonment() -> None:
    """P[abandon] = θE[W] under every policy whose clocks run while a job waits; so E[W] has a bound too."""
    for policy, result in all_policies("exponential").items():
        if policy != "loss-priority":
            lost = result.interval("abandonment", LEVEL)
            slack = lost.half_width + result.interval("mean_waiting", LEVEL).half_width
            assert abs(lost.value - result.mean_waiting) < slack, policy


# ---- where FCFS waits less than SRPT ----------------------------------------------------------------------


def waiting(model: Mapping[str, object], jobs: int = 400_000) -> Interval:
    """E[W] of fcfs less that of srpt on the same jobs."""
    results = run(scenario("impatient-dhr-light-100", **model), ["fcfs", "srpt"], jobs, seed=3, streams=20)
    return results.difference("fcfs", "srpt", "mean_waiting", LEVEL)


def test_named_scenario_where_fcfs_waits_less_than_srpt() -> None:
    difference = waiting({})
    assert difference.high < -0.02


@pytest.mark.parametrize(
    "change",
    [
        {"patience": {"law": "exponential", "mean": 1.0}},
        {"patience": {"law": "weibull", "shape": 2.0, "mean": 1.0}},
        {"sizes": {"law": "weibull", "shape": 0.4, "mean": 1.0}},
    ],
    ids=["constant hazard", "increasing hazard", "heavy service"],
)
def test_srpt_waits_less_without_both_decreasing_hazard_and_light_service(change: Mapping[str, object]) -> None:
    assert waiting(change).low > 0.0


@pytest.mark.parametrize("servers", [200, 1000])
def test_crossing_of_a_finite_system_lies_below_that_of_the_limit(servers: int) -> None:
    """Exponential service: SRPT waits less there than FCFS at the limit's crossing, and more at a shape of 0.45."""
    crossing = theory.patience_crossing(1.5, SIZES["exponential"])
    assert 0.45 < crossing < 0.6
    model = {"servers": servers, "sizes": SIZES["exponential"].spec()}
    for shape, sign in ((crossing, 1), (0.45, -1)):
        found = waiting({**model, "patience": {"law": "weibull", "shape": shape, "mean": 1.0}}, 300 * servers)
        assert math.copysign(1, found.low) == math.copysign(1, found.high) == sign
