"""The simulator against the published and independently computed numbers of ../shared/reference/values.csv.

Intervals are of 99.9 % (see `tests.intervals`), about 160 of them. Against a number that was itself simulated the
interval is widened as if that run had had the same variance for each job. Not used: LRPT, which is no policy of
ours, and a size law that the table names by "as above" only.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from functools import cache

import numpy as np
import pytest

from queue_env import Comparison, Result, Workload, simulate
from queue_env.distributions import law
from queue_env.tail import Interval
from tests.intervals import LEVEL, check, check_interval, mean_over, queue, records, run
from tests.test_theory_reference_values import POLICIES, ROWS, Row, numbers, printed_half_unit, rows

EXPONENTIAL = law({"law": "exponential", "mean": 1.0})
SIZES = {
    "Exp(1)": EXPONENTIAL,
    "U(0;2)": law({"law": "uniform", "low": 0.0, "high": 2.0}),
    "0.5 Exp rate2 + 0.5 Exp rate2/3": law(
        {"law": "hyperexponential", "probabilities": [0.5, 0.5], "means": [0.5, 1.5]}
    ),
    "0.8 Exp mean0.5 + 0.2 Exp mean3": law(
        {"law": "hyperexponential", "probabilities": [0.8, 0.2], "means": [0.5, 3.0]}
    ),
}


def check_simulated(found: Interval, jobs: float, published: float, published_jobs: float, unit: float) -> None:
    """Check a simulated number against one that was simulated too, and rounded to a unit."""
    slack = found.half_width * math.sqrt(1.0 + jobs / published_jobs) + 0.5 * unit
    assert abs(found.value - published) <= slack, f"{found} is not near {published}"


HEAVIEST = 0.95
"""A run long enough to tell anything at higher loads takes minutes."""


# ---- SRPT on several servers ------------------------------------------------------------------------------


def srpt_jobs(load: float) -> int:
    """Jobs enough for a half-width of 4 %."""
    return 1_000_000 if load < 0.85 else 3_000_000


@cache
def srpt_mean(servers: int, load: float, sizes: str) -> Interval:
    result = run(queue(SIZES[sizes], load, servers), ["srpt"], srpt_jobs(load), seed=1)["srpt"]
    return result.interval("mean_response", LEVEL)


@pytest.mark.parametrize("row", rows("M/G/2 SRPT-2|M/G/4 SRPT-4", "sim", r"S=(Exp\(1|U|0.5 Exp)"))
def test_srpt_on_several_servers(row: Row) -> None:
    """Servers there have speed 1/n, so that times are n times ours; one row names its law by "as above" only."""
    servers, load = int(row["model"][4]), numbers(row)["rho"]
    if load > HEAVIEST:
        pytest.skip(f"load above {HEAVIEST}")
    found = srpt_mean(servers, load, row["parameters"].removeprefix("S=").split("; rho")[0])
    assert found.half_width < 0.04 * found.value
    published_jobs = float(row["size_or_note"].split()[0])
    check_simulated(found, srpt_jobs(load), float(row["value"]) / servers, published_jobs, 1e-6)


# ---- one server -------------------------------------------------------------------------------------------

TAIL_JOBS = 8_000_000
FEWEST_EVENTS = 1000


@cache
def tails() -> Comparison:
    """The queue of the published tails: arrivals at rate 0.4 of sizes of mean 1."""
    sizes = SIZES["0.8 Exp mean0.5 + 0.2 Exp mean3"]
    return run(queue(sizes, 0.4), ["srpt", "sjf", "fcfs"], TAIL_JOBS, seed=2)


@pytest.mark.parametrize("row", rows("M/G/1 (SRPT|SPT.*|FCFS)", "sim", "0.8 Exp mean0.5"))
def test_tails_on_one_server(row: Row) -> None:
    policy = {"M/G/1 SRPT": "srpt", "M/G/1 FCFS": "fcfs"}.get(row["model"], "sjf")
    time = float(re.findall(r"[\d.]+", row["metric"])[0])
    value = float(row["value"])
    if value * TAIL_JOBS < FEWEST_EVENTS:
        pytest.skip(f"fewer than {FEWEST_EVENTS} jobs of {TAIL_JOBS} take so long")
    found = tails()[policy].interval(f"tail:{time}", LEVEL)
    assert found.half_width < max(0.01, 20.0 / math.sqrt(value * TAIL_JOBS)) * value
    check_simulated(found, TAIL_JOBS, value, 2e9, 10.0 ** (math.floor(math.log10(value)) - 5))


@cache
def exponential_sizes(load: float) -> Comparison:
    jobs = 1_000_000 if load < 0.75 else 4_000_000 if load < 0.92 else 6_000_000
    return run(queue(EXPONENTIAL, load), POLICIES.values(), jobs, seed=3)


@pytest.mark.parametrize(
    "row",
    [*rows("M/M/1 (SRPT|PSJF|LAS/FB)", "exact"), *rows("M/M/1 (FCFS|SJF|PSJF|SRPT)", "published")],
)
def test_exponential_sizes_on_one_server(row: Row) -> None:
    policy, load = POLICIES[row["model"].split()[1]], numbers(row)["rho"]
    if "disagrees with exact" in row["size_or_note"] and policy != "fcfs":
        pytest.skip("the table itself notes that the value is wrong")
    if load > HEAVIEST:
        pytest.skip(f"load above {HEAVIEST}")
    found = exponential_sizes(load)[policy].interval("mean_response", LEVEL)
    value = float(row["value"])
    assert found.half_width < (0.03 if load < 0.85 else 0.06 if load < 0.92 else 0.1) * value
    rounding = printed_half_unit(row["value"]) * (1.0 if row["kind"] == "published" else 10.0)
    assert abs(found.value - value) <= found.half_width + rounding


CLASS_RATES = (0.2, 0.3)
CLASS_MEANS = (1.0, 0.5)


@cache
def two_classes(policy: str) -> tuple[Interval, Interval]:
    """Mean response of each class of jobs in one queue that does not know the classes."""
    rng = np.random.default_rng(4)
    count, rate = 1_000_000, sum(CLASS_RATES)
    second = rng.random(count) < CLASS_RATES[1] / rate
    sizes = rng.standard_exponential(count) * np.where(second, CLASS_MEANS[1], CLASS_MEANS[0])
    arrivals = np.cumsum(rng.standard_exponential(count)) / rate
    jobs = simulate(Workload(arrivals, sizes), policy, servers=1, records=True).records
    assert jobs is not None
    response = jobs["departure_time"] - jobs["arrival_time"]
    return mean_over(response, ~second), mean_over(response, second)


@pytest.mark.parametrize("row", rows("M/G/1 (SRPT|PSJF|LAS/FB)", "exact"))
def test_two_exponential_classes(row: Row) -> None:
    policy, number = POLICIES[row["model"].split()[1]], int(row["metric"][-1])
    check_interval(two_classes(policy)[number - 1], float(row["value"]), 0.03, row["metric"])


# ---- many servers -----------------------------------------------------------------------------------------


@cache
def erlang(servers: int, offered: float) -> Comparison:
    policies = ["fcfs", "ps", "loss-priority:tau=1e9"]
    return run(queue(EXPONENTIAL, offered / servers, servers), policies, 2_000_000, seed=5)


@pytest.mark.parametrize("row", rows("M/M/n", "exact"))
def test_erlang_b_and_c(row: Row) -> None:
    given = numbers(row)
    in_order, sharing, loss = erlang(int(given["n"]), given["A"]).values()
    value = float(row["value"])
    if row["metric"] == "ErlangB":
        check(loss, "abandonment", value, 0.12)
    elif row["metric"].startswith("ErlangC"):
        check(in_order, "waited_fraction", value, 0.18)
    else:
        check(in_order, "mean_response", value, 0.05)
        check(sharing, "mean_response", value, 0.05)


def test_number_in_system_of_processor_sharing() -> None:
    """Arrivals see time averages, so the number that job i finds is i less those that left before it came."""
    law_of_number = [float(row["value"]) for row in ROWS if "PS R=3" in row["model"]]
    if not law_of_number:
        pytest.skip("the table has no such rows")
    scenario = queue({"law": "exponential", "mean": 1.0 / 12.0}, 10.0 / 36.0, servers=3)
    jobs = records(scenario, ["ps"], 2_000_000, seed=6)["ps"]
    gone = np.searchsorted(np.sort(jobs["departure_time"]), jobs["arrival_time"], side="right")
    found = np.arange(len(gone)) - gone
    for number, probability in enumerate(law_of_number):
        check_interval(mean_over(found == number, np.ones_like(found, bool)), probability, 0.06, f"N={number}")


# ---- patience ---------------------------------------------------------------------------------------------


@cache
def erlang_a(rate: float, servers: int, theta: float) -> Mapping[str, Interval]:
    """The metrics of the table, over jobs; by Little's law, the queue is as long as waiting times arrival rate."""
    patience = {"law": "exponential", "mean": 1.0 / theta}
    scenario = queue(EXPONENTIAL, rate / servers, servers, patience=patience)
    jobs = records(scenario, ["fcfs"], 1_200_000, seed=7)["fcfs"]
    waiting, abandoned = jobs["waiting_time"], jobs["outcome"] == 1
    every = np.ones_like(abandoned)
    return {
        "P(ab)": mean_over(abandoned, every),
        "E[Q]": mean_over(waiting * rate, every),
        "E[W|served]": mean_over(waiting, ~abandoned),
        "E[W|abandoned]": mean_over(waiting, abandoned),
        "P(W=0)": mean_over(waiting == 0.0, every),
    }


@pytest.mark.parametrize("row", rows(r"M/M/n\+M FCFS", "exact"))
def test_erlang_a(row: Row) -> None:
    given = numbers(row)
    found = erlang_a(given["lambda"], int(given["n"]), given["theta"])[row["metric"]]
    value = float(row["value"])
    check_interval(found, value, 0.2 if value > 0.02 else 0.5, row["metric"])


@cache
def general_patience(servers: int, load: float, name: str) -> Result:
    """Service of mean 3 and patience of mean 5, as many jobs as the table."""
    patience = {
        "Exp": {"law": "exponential", "mean": 5.0},
        "Det": {"law": "deterministic", "value": 5.0},
    }[name]
    scenario = queue({"law": "exponential", "mean": 3.0}, load, servers, patience=patience)
    return run(scenario, ["fcfs"], 1_000_000, seed=8)["fcfs"]


@pytest.mark.parametrize("row", rows(r"M/M/n\+GI FCFS", "sim"))
def test_general_patience(row: Row) -> None:
    given = numbers(row)
    patience = re.findall("patience (Exp|Det)", row["parameters"])[0]
    result = general_patience(int(given["n"]), given["rho"], patience)
    quantity = "abandonment" if row["metric"] == "P(ab)" else "mean_waiting"
    found, value = result.interval(quantity, LEVEL), float(row["value"])
    if value * result.jobs < FEWEST_EVENTS:
        pytest.skip(f"fewer than {FEWEST_EVENTS} jobs of {result.jobs} left unserved there")
    assert found.half_width < 0.25 * value
    check_simulated(found, 1e6, value, 1e6, 1e-6)
