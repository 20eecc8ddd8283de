"""Every policy, compiled, against the slow simulator of tests/reference on hostile workloads."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from numpy.typing import NDArray

from queue_env.distributions import law
from queue_env.kernel.layout import PRESENT
from queue_env.rules import parse_policy, set_up
from queue_env.system import System
from queue_env.workload import Chunk
from tests import reference
from tests.strategies import ALL_POLICIES, Case, cases

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
