"""Every policy, compiled, against the slow simulator of tests/reference on hostile workloads."""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, currently_in_test_context, given, settings
from numpy.typing import NDArray

from queue_env.distributions import law
from queue_env.kernel.layout import PRESENT
from queue_env.rules import parse_policy
from queue_env.settings import set_up
from queue_env.system import System
from queue_env.workload import Chunk
from tests import reference
from tests.strategies import ALL_POLICIES, Case, PolicyChoice, Workload, cases

HOSTILE = settings(suppress_health_check=[HealthCheck.filter_too_much, HealthCheck.too_slow])


def run(case: Case, chunk: int = 10_000, heaps: bool = False) -> NDArray[np.void]:
    """Run the compiled policy and return the kernel's records; with heaps as for many servers and jobs, if asked."""
    workload, choice = case.workload, case.policy
    jobs = len(workload.sizes)
    spare = -1.0 if choice.delta is None else choice.delta
    sizes = law({"law": "exponential", "mean": 1})
    setting = set_up(parse_policy({"policy": choice.name, **choice.parameters}), workload.servers, spare, sizes)
    if heaps:
        setting = replace(setting, kernel={**setting.kernel, "dual": 1, "many": 0})
    clock = None if workload.patience is None else case.clock
    system = System(setting, clock=clock, counted=(0, jobs), recorded=jobs)
    columns = [workload.arrival_times, workload.sizes, workload.patience]
    for start in range(0, jobs, chunk):
        system.feed(Chunk(*(None if c is None else np.array(c[start : start + chunk]) for c in columns)))
    system.drain()
    return system.memory.records


def check(case: Case) -> None:
    """Assert that the compiled run is the slow one: departures to 1e-9 relative, and the rest of the records."""
    slow = reference.simulate(**case.arguments())
    if currently_in_test_context():
        assume(slow.well_conditioned())
    expected = slow.arrays()
    found = run(case)
    end = np.nanmax(expected["departure_times"], initial=1e-300)
    np.testing.assert_array_equal(found["outcome"], expected["outcomes"])
    np.testing.assert_allclose(found["departure_time"], expected["departure_times"], rtol=1e-9)
    gone = found["outcome"] != PRESENT
    np.testing.assert_allclose(found["start_time"][gone], expected["start_times"][gone], rtol=1e-9)
    np.testing.assert_allclose(found["waiting_time"][gone], expected["waiting_times"][gone], rtol=1e-9, atol=1e-9 * end)


@pytest.mark.parametrize("policy", ALL_POLICIES)
def test_agrees_with_slow_simulator(policy: str) -> None:
    @HOSTILE
    @given(case=cases((policy,)))
    def agrees(case: Case) -> None:
        check(case)

    agrees()


@pytest.mark.parametrize("policy", ALL_POLICIES)
def test_agrees_where_patience_matters(policy: str) -> None:
    @HOSTILE
    @given(case=cases((policy,), patience=True))
    def agrees(case: Case) -> None:
        check(case)

    agrees()


def assert_same(found: NDArray[np.void], expected: NDArray[np.void]) -> None:
    for name in expected.dtype.names or ():
        np.testing.assert_array_equal(found[name], expected[name])


# The work of backlog-split's other jobs is summed anew at every chunk, so it agrees but for rounding.
@HOSTILE
@given(case=cases([name for name in ALL_POLICIES if name != "backlog-split"], max_jobs=25))
def test_chunks_do_not_matter(case: Case) -> None:
    assert_same(run(case, chunk=3), run(case))


@HOSTILE
@given(case=cases([name for name in ALL_POLICIES if name not in ("ps", "las")]))
def test_heaps_for_many_servers_and_jobs_do_what_looking_at_all_does(case: Case) -> None:
    assert_same(run(case, heaps=True), run(case))


BURST = (0.3, 1000.3, 1000.3, 1000.3, 1000.3)
HARD_CASES = {
    # A job that begins and is preempted at one instant off the binary grid keeps its tie with later equal jobs.
    "preempted as it begins": Case(
        Workload(BURST, (5.0, 0.1, 0.1, 0.1, 0.05), None, 1, False), "queue", PolicyChoice("srpt")
    ),
    "the same beside an anchor": Case(
        Workload(BURST, (5.0, 0.1, 0.1, 0.1, 0.05), None, 2, False), "queue", PolicyChoice("split")
    ),
    # The time of a burst is read before and after the clock's origin moves, for a job of little patience.
    "origin moved within a burst": Case(
        Workload((1.4, 101.4, 1e8 + 0.3, 1e8 + 0.3, 1e8 + 0.3), (0.7,) * 5, (9.0, 9.0, 9.0, 1e-6, 9.0), 1, False),
        "queue",
        PolicyChoice("backlog-split", {"b": 0.5, "kappa": 0.0}),
    ),
    # The backlog reaches the threshold at the instant of an arrival, which comes first.
    "switch and arrival at once": Case(
        Workload((2.25, 2.25, 2.75, 3.375), (0.5, 1.0, 3.0, 2.0), (np.inf, 0.0, 0.0, 0.0), 1, True),
        "queue",
        PolicyChoice("backlog-split", {"b": 1.0, "kappa": 1.0}),
    ),
    "a tiny large job behind a huge one": Case(
        Workload((0.0, 0.0), (1e9, 1e-8), None, 2, False), "queue", PolicyChoice("thresh-split", {"d": 1e-9})
    ),
}


@pytest.mark.parametrize("name", HARD_CASES)
def test_hard_cases(name: str) -> None:
    check(HARD_CASES[name])


def test_a_burst_long_past_costs_nothing() -> None:
    """The origin moves often where sizes are small; that must touch the jobs present, not the slots once used."""
    rng = np.random.default_rng(0)
    sizes = rng.weibull(0.25, 200_000) / 24
    gaps = rng.exponential(2.0, 200_000)

    def seconds(burst: int) -> float:
        setting = set_up(parse_policy("srpt"), 1, 0.5, law({"law": "exponential", "mean": 1}))
        system = System(setting, counted=(0, burst + 200_000), relative=True)
        if burst:
            system.feed(Chunk(np.zeros(burst), np.full(burst, 1e-3), None))
            system.feed(Chunk(np.array([1e6]), np.array([1.0]), None))
        began = time.process_time()
        system.feed(Chunk(np.cumsum(gaps), sizes, None))
        return time.process_time() - began

    calm = min(seconds(0) for _ in range(3))
    assert min(seconds(30_000) for _ in range(3)) < 10 * calm
