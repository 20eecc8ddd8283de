"""Policies of one's own: against the built-in ones, against the exact simulator, and when they are wrong."""

from __future__ import annotations

import doctest
import functools
import math
import subprocess
import sys
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numba import njit
from numpy.typing import NDArray

from queue_env import Workload, allocation_policy, anchor_policy, index_policy, simulate, user_policies
from queue_env.user_policies import UserPolicy
from tests.reference import Allocation, Job, Rule, System
from tests.reference import simulate as simulate_exactly
from tests.strategies import CLOCKS

Floats = NDArray[np.float64]
ROOT = Path(__file__).parents[1]


def compiled(function: Callable[..., float]) -> Callable[..., float]:
    dispatcher: Callable[..., float] = njit(function)
    return dispatcher


def remaining_size(size: float, remaining: float, number: float, parameters: Floats) -> float:
    return remaining


def original_size(size: float, remaining: float, number: float, parameters: Floats) -> float:
    return size


def order_of_arrival(size: float, remaining: float, number: float, parameters: Floats) -> float:
    return float(parameters[0] * number)


@compiled
def size_times_remaining(size: float, remaining: float, number: float, parameters: Floats) -> float:
    return size * remaining


@compiled
def log_anchor(size: float, remaining: float, backlog: float, jobs: float, spare: float, parameters: Floats) -> float:
    return float(spare - spare / (parameters[0] + np.log1p(size)))


@compiled
def equal_shares(
    sizes: Floats, remaining: Floats, ages: Floats, servers: int, parameters: Floats, rates: Floats
) -> float:
    rates[:] = min(1.0, servers / max(len(rates), 1))
    return np.inf


@compiled
def shortest_first(
    sizes: Floats, remaining: Floats, ages: Floats, servers: int, parameters: Floats, rates: Floats
) -> float:
    for slot in np.argsort(remaining)[:servers]:
        rates[slot] = 1.0
    return np.inf


@compiled
def one_and_a_half(
    sizes: Floats, remaining: Floats, ages: Floats, servers: int, parameters: Floats, rates: Floats
) -> float:
    """The oldest at 3/4, the next at 1/2, the third at 1/4, for at most 1/4."""
    for i in range(min(3, len(rates))):
        rates[i] = 0.75 - 0.25 * i
    return 0.25


@compiled
def least_attained(
    sizes: Floats, remaining: Floats, ages: Floats, servers: int, parameters: Floats, rates: Floats
) -> float:
    attained = sizes - remaining
    order = np.argsort(attained)
    left, hold, first = float(servers), np.inf, 0
    level_below, rate_below = 0.0, 0.0
    while first < len(order):
        level, last = attained[order[first]], first
        while last < len(order) and attained[order[last]] - level <= parameters[0]:
            last += 1
        rate = min(1.0, left / (last - first))
        for i in range(first, last):
            rates[order[i]] = rate
        if rate_below > rate:
            hold = min(hold, (level - level_below) / (rate_below - rate))
        left = max(left - rate * (last - first), 0.0)
        level_below, rate_below, first = level, rate, last
    return hold


def random_jobs(seed: int, servers: int, jobs: int = 3000, patience: float | None = None) -> Workload:
    rng = np.random.default_rng(seed)
    arrivals, sizes = np.cumsum(rng.exponential(0.9 / servers, jobs)), rng.exponential(1.0, jobs) ** 2
    return Workload(arrivals, sizes, None if patience is None else rng.exponential(patience, jobs))


def columns(jobs: Workload, policy: str | UserPolicy, servers: int, clock: str | None = None) -> dict[str, Any]:
    records = simulate(jobs, policy, servers=servers, records=True, clock=clock).records
    assert records is not None
    return dict(records)


def assert_alike(one: dict[str, Any], other: dict[str, Any], rtol: float = 0.0) -> None:
    for name in ("outcome", "start_time", "departure_time"):
        np.testing.assert_allclose(one[name], other[name], rtol=rtol, err_msg=name)
    np.testing.assert_allclose(one["waiting_time"], other["waiting_time"], rtol=rtol, atol=1e3 * rtol)


# ---- indices ----------------------------------------------------------------------------------------------

INDICES: list[tuple[str, Callable[..., float], dict[str, Any]]] = [
    ("srpt", remaining_size, {}),
    ("psjf", original_size, {}),
    ("psjf", original_size, {"dynamic": False}),
    ("sjf", original_size, {"preemptive": False}),
    ("fcfs", order_of_arrival, {"parameters": [1.0]}),
    ("fcfs", order_of_arrival, {"parameters": [1.0], "preemptive": False, "dynamic": False}),
    ("plcfs", order_of_arrival, {"parameters": [-1.0], "dynamic": False}),
    ("lcfs", order_of_arrival, {"parameters": [-1.0], "preemptive": False}),
]


@pytest.mark.parametrize("patience", [None, 3.0])
@pytest.mark.parametrize("servers", [1, 3, 32, 33, 40])
@pytest.mark.parametrize(("name", "function", "options"), INDICES)
def test_an_index_that_is_built_in_too(
    name: str, function: Callable[..., float], options: dict[str, Any], servers: int, patience: float | None
) -> None:
    """To the bit; n > 32 has another data structure."""
    jobs = random_jobs(1, servers, patience=patience)
    mine = columns(jobs, index_policy(function, **options), servers)
    assert_alike(mine, columns(jobs, name, servers))


@pytest.mark.parametrize("clock", CLOCKS)
@pytest.mark.parametrize("servers", [1, 2, 33])
def test_size_times_remaining_against_the_exact_simulator(servers: int, clock: str) -> None:
    jobs = random_jobs(2, servers, 250, patience=5.0)
    assert jobs.patience is not None

    def product(job: Job) -> tuple[Fraction, int]:
        return job.size * job.remaining, job.number

    def rule(system: System) -> Allocation:
        best = sorted(system.jobs, key=product)[:servers]
        return Allocation({job.number: Fraction(1) for job in best})

    mine = columns(jobs, index_policy(size_times_remaining), servers, clock)
    assert_exact(mine, jobs, rule, servers, clock)


def assert_exact(mine: dict[str, Any], jobs: Workload, rule: Rule, servers: int, clock: str = "queue") -> None:
    patience = None if jobs.patience is None else jobs.patience.tolist()
    exact = simulate_exactly(
        jobs.arrival_times.tolist(), jobs.sizes.tolist(), rule, servers, patience=patience, clock=clock
    ).arrays()
    np.testing.assert_array_equal(mine["outcome"], exact["outcomes"])
    np.testing.assert_allclose(mine["departure_time"], exact["departure_times"], rtol=1e-9)
    np.testing.assert_allclose(mine["waiting_time"], exact["waiting_times"], rtol=1e-9, atol=1e-9)


# ---- anchors ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("patience", [None, 5.0])
@pytest.mark.parametrize("servers", [1, 2, 5, 40])
def test_dynasplit_by_hand(servers: int, patience: float | None) -> None:
    jobs = random_jobs(3, servers, patience=patience)
    rng = np.random.default_rng(3)
    jobs = Workload(jobs.arrival_times * 4, rng.exponential(1.0, len(jobs)), jobs.patience)
    mine = columns(jobs, anchor_policy(log_anchor, parameters=[2.0]), servers)
    assert_alike(mine, columns(jobs, "dynasplit", servers), rtol=1e-12)


@pytest.mark.parametrize("rate", [-3.0, 0.0, 0.3, 1.0, 7.0])
def test_an_anchors_rate_is_cut_to_what_a_server_gives(rate: float) -> None:
    jobs = random_jobs(4, 2, 200)

    def constant(size: float, remaining: float, backlog: float, jobs: float, spare: float, parameters: Floats) -> float:
        return float(parameters[0])

    cut = Fraction(min(max(rate, 0.0), 1.0))
    role: list[Job] = []

    def rule(system: System) -> Allocation:
        present = system.jobs
        role[:] = [job for job in role if job in present] or sorted(present, key=lambda job: -job.size)[:1]
        if len(present) <= 2:
            return Allocation({job.number: Fraction(1) for job in present})
        others = sorted((job for job in present if job is not role[0]), key=lambda job: job.remaining)
        return Allocation({role[0].number: cut, others[0].number: Fraction(1), others[1].number: 1 - cut})

    assert_exact(columns(jobs, anchor_policy(constant, parameters=[rate]), 2), jobs, rule, 2)


# ---- allocations ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("patience", [None, 3.0])
@pytest.mark.parametrize("clock", CLOCKS)
@pytest.mark.parametrize("servers", [1, 4, 40])
@pytest.mark.parametrize(("name", "function"), [("ps", equal_shares), ("srpt", shortest_first)])
def test_an_allocation_that_is_built_in_too(
    name: str, function: Callable[..., float], servers: int, clock: str, patience: float | None
) -> None:
    jobs = random_jobs(5, servers, 2000, patience)
    mine = columns(jobs, allocation_policy(function), servers, clock)
    assert_alike(mine, columns(jobs, name, servers, clock), rtol=1e-9)


@pytest.mark.parametrize("clock", CLOCKS)
def test_fractional_rates_with_a_hold_against_the_exact_simulator(clock: str) -> None:
    jobs = random_jobs(6, 2, 60, patience=6.0)

    def rule(system: System) -> Allocation:
        rates = {job.number: Fraction(3 - i, 4) for i, job in enumerate(system.jobs[:3])}
        return Allocation(rates, hold=Fraction(1, 4) if rates else None)

    assert_exact(columns(jobs, allocation_policy(one_and_a_half), 2, clock), jobs, rule, 2, clock)


@pytest.mark.parametrize("servers", [1, 3])
def test_least_attained_service_by_hand(servers: int) -> None:
    """Levels count as met within 1e-9, since a hold that ends too early by rounding would be followed by a tiny one."""
    jobs = random_jobs(7, servers, 500)
    mine = columns(jobs, allocation_policy(least_attained, parameters=[1e-9]), servers)
    np.testing.assert_allclose(mine["departure_time"], columns(jobs, "las", servers)["departure_time"], atol=1e-6)


def test_a_job_with_nothing_left_leaves_though_it_gets_no_rate() -> None:
    """Two complete together; after the first has left, the function serves another than the second."""

    @compiled
    def last_of_two(
        sizes: Floats, remaining: Floats, ages: Floats, servers: int, parameters: Floats, rates: Floats
    ) -> float:
        if len(rates) >= 3:
            rates[:2] = 1.0
        else:
            rates[-1:] = 1.0
        return np.inf

    mine = columns(Workload([0, 0, 0], [1, 1, 5]), allocation_policy(last_of_two), 2)
    assert mine["departure_time"].tolist() == [1, 1, 6]


@pytest.mark.parametrize("tolerance", ["0.0", "1e-12"])
def test_a_hold_too_short_for_the_clock_does_not_hang(tolerance: str) -> None:
    """A gap left by rounding, or 1e-12 at time 1e6: the clock must move on, or the policy be refused."""
    code = f"""
import numpy as np
from queue_env import Workload, allocation_policy, simulate
from tests.test_user_policies import least_attained, random_jobs
jobs = random_jobs(7, 2, 200)
jobs = Workload(jobs.arrival_times + 1e6, jobs.sizes)
try:
    simulate(jobs, allocation_policy(least_attained, parameters=[{tolerance}]), servers=2)
except ValueError as error:
    assert "hold" in str(error)
"""
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, timeout=25, check=True)


# ---- what is wrong ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rate", "hold"),
    [(-0.1, 1.0), (1.1, 1.0), (math.nan, 1.0), (0.7, 1.0), (0.5, 0.0), (0.5, -1.0), (0.5, math.nan)],
)
def test_rates_that_are_not_allowed(rate: float, hold: float) -> None:
    @compiled
    def constant(
        sizes: Floats, remaining: Floats, ages: Floats, servers: int, parameters: Floats, rates: Floats
    ) -> float:
        rates[:] = parameters[0]
        return float(parameters[1])

    policy = allocation_policy(constant, name="mine", parameters=[rate, hold])
    with pytest.raises(ValueError, match=r"policy mine: its rates are not allowed; allowed: 0 <= v <= 1 .* at most 2"):
        simulate(Workload([0, 0, 0], [1, 1, 1]), policy, servers=2)


@pytest.mark.parametrize("kind", ["index", "anchor"])
def test_an_index_or_rate_that_is_no_number_is_an_error(kind: str) -> None:
    def index(size: float, remaining: float, number: float, parameters: Floats) -> float:
        return np.nan

    def anchor(size: float, remaining: float, backlog: float, jobs: float, spare: float, parameters: Floats) -> float:
        return np.nan

    policy = index_policy(index) if kind == "index" else anchor_policy(anchor)
    with pytest.raises(ValueError, match=r"is NaN.* allowed: a number"):
        simulate(random_jobs(8, 2, 100), policy, servers=2)


class _Callable:
    def __call__(self, size: float, remaining: float, number: float, parameters: Floats) -> float:
        return size


def _opens_a_file(size: float, remaining: float, number: float, parameters: Floats) -> float:
    return open("x")  # type: ignore[return-value]


def _has_a_with(size: float, remaining: float, number: float, parameters: Floats) -> float:
    with open("x") as file:
        return float(file.read())


def _returns_text(size: float, remaining: float, number: float, parameters: Floats) -> float:
    return "a"  # type: ignore[return-value]


def _takes_two(size: float, remaining: float) -> float:
    return size


@pytest.mark.parametrize(
    "function",
    [
        _opens_a_file,
        _has_a_with,
        _returns_text,
        _takes_two,
        functools.partial(remaining_size),
        _Callable(),
        max,
        int,
    ],
)
def test_a_function_that_cannot_be_compiled(function: Any) -> None:
    with pytest.raises(ValueError, match=r"function=.*(numba cannot compile|allowed)"):
        simulate(random_jobs(8, 2, 10), index_policy(function), servers=2)


@pytest.mark.parametrize("make", [index_policy, anchor_policy, allocation_policy])
def test_arguments_that_are_not_allowed(make: Callable[..., UserPolicy]) -> None:
    with pytest.raises(ValueError, match=r"function='srpt', allowed: a function"):
        make("srpt")
    with pytest.raises(ValueError, match="parameters"):
        make(remaining_size, parameters=["x"])
    with pytest.raises(ValueError, match="parameters"):
        make(remaining_size, parameters=None)


# ---- names and examples -----------------------------------------------------------------------------------


def test_names() -> None:
    assert index_policy(remaining_size).name == "remaining_size"
    assert index_policy(size_times_remaining).name == "size_times_remaining"
    mine = index_policy(remaining_size, name="mine")
    run = simulate(random_jobs(9, 2, 100), ["srpt", mine, index_policy(original_size)], servers=2)
    assert list(run) == ["srpt", "mine", "original_size"]
    with pytest.raises(ValueError, match="all different"):
        simulate(random_jobs(9, 2, 10), ["srpt", index_policy(remaining_size, name="srpt")], servers=2)


def test_the_same_function_with_other_parameters() -> None:
    jobs = random_jobs(10, 1, 500)
    first, last = (index_policy(order_of_arrival, name=str(sign), parameters=[sign]) for sign in (1.0, -1.0))
    run = simulate(jobs, [first, last], servers=1)
    assert run["1.0"].mean_response == simulate(jobs, "fcfs", servers=1).mean_response
    assert run["-1.0"].mean_response == simulate(jobs, "plcfs", servers=1).mean_response


def test_the_examples_of_the_module_run() -> None:
    result = doctest.testmod(user_policies)
    assert result.attempted >= 3
    assert result.failed == 0
