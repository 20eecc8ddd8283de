"""Checks of simulated numbers against exact ones, by confidence intervals.

Every check asks that a 99.9 % interval (Student's, over independent streams or over batches of jobs) holds the
exact value, and that it is narrow enough for the check to mean something. Seeds are fixed: with N checks, a
correct simulator would fail one of them for a fraction of at most N/1000 of the choices of seeds.

The rows must be close to normal, so only quantities with more than two finite moments are checked this way.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from queue_env import Comparison, Law, Result, Scenario, simulate
from queue_env.tail import Interval, jackknife, quotient

LEVEL = 0.999
BATCHES = 40
LITTLE_GAP = 1e-9
"""Little's law holds on every path, up to the rounding of the sums."""


def queue(sizes: Law | Mapping[str, Any], load: float, servers: int = 1, **fields: Any) -> Scenario:
    """A scenario, by default M/G/1."""
    return Scenario.from_dict({"servers": servers, "load": load, "sizes": sizes, **fields})


def run(scenario: Scenario, policies: Iterable[str], jobs: int, seed: int, **arguments: Any) -> Comparison:
    """Run policies on the same jobs, all of which must leave, and check Little's law for each."""
    results = simulate(scenario, list(policies), jobs=jobs, seed=seed, **arguments)
    for result in results.values():
        assert result.little_law_gap < LITTLE_GAP
        assert result.served + result.abandoned == jobs
    return results


def check(result: Result, quantity: str, exact: float, width: float) -> None:
    """Check a quantity of a result; the half-width may be at most `width` of the exact value."""
    check_interval(result.interval(quantity, LEVEL), exact, width, f"{result.policy}, {quantity}")


def check_share(result: Result, quantity: str, exact: float, width: float) -> None:
    """The same for a share of at most one; close to one the rows are far from normal, and only nearness counts."""
    if exact < 0.99:
        check(result, quantity, exact, width)
    else:
        assert abs(result.value(quantity) - exact) < 0.01, f"{result.policy}, {quantity}, beside {exact}"


def check_interval(interval: Interval, exact: float, width: float, what: str) -> None:
    """Check an interval in the same way."""
    assert interval.half_width <= width * exact, f"{what}: {interval} is wide beside {exact}"
    assert interval.low <= exact <= interval.high, f"{what}: {interval} misses {exact}"


def mean_over(values: ArrayLike, chosen: NDArray[np.bool_]) -> Interval:
    """Interval for the mean of records over the chosen jobs, by batches of consecutive jobs.

    The first tenth of the jobs is left out: the system began empty.
    """
    first = len(chosen) // 10
    columns = np.column_stack([np.where(chosen, values, 0.0), chosen])[first:]
    starts = np.linspace(0, len(columns), BATCHES, endpoint=False).astype(np.intp)
    sums = np.add.reduceat(columns, starts, axis=0)
    estimate = jackknife(sums, lambda sums: quotient(sums[..., 0], sums[..., 1]))
    low, high = estimate.ends(LEVEL)
    return Interval(float(estimate.value), float(low), float(high), LEVEL)


def records(scenario: Scenario, policies: Iterable[str], jobs: int, seed: int) -> dict[str, Mapping[str, NDArray[Any]]]:
    """Each policy's records of the same jobs, from an empty system."""
    results = run(scenario, policies, jobs, seed, records=True)
    return {policy: result.records for policy, result in results.items() if result.records is not None}
