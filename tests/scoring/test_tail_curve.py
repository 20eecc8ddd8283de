"""Tail curves beside plain runs, at several levels of blocks, and as estimates of one at t = 0.

Intervals are Student's over replications, seeds are fixed. Of the checks, 24 are of totals, 24 of curves beside plain
runs (each joint over its times), 24 of pairs of levels (12 of totals, 12 joint over times), 8 of short grids and 1 of
`high-load-10`: at 99.9 % each, a correct estimator would fail for a fraction of at most 0.08 of the choices of seeds,
once and for all.
"""

from __future__ import annotations

from functools import cache
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from queue_env import Result, TailCurve, allocation_policy, anchor_policy, index_policy, scenario, simulate, tail_curve
from queue_env.scoring.curve import default_times
from tests.scoring.rules import fair_shares, log_rate, size_times_remaining
from tests.scoring.small import LEVEL, short_replications, small_curve, standard_error, student, total_within

Floats = NDArray[np.float64]

BUILT_IN = (
    "srpt", "dynasplit", "fcfs", "ps", "las", "plcfs", "backlog-split", "thresh-split", "super-server",
)  # fmt: skip
OWN: dict[str, Any] = {
    "index": index_policy(size_times_remaining),
    "anchor": anchor_policy(log_rate),
    "allocation": allocation_policy(fair_shares),
}
POLICIES: dict[str, Any] = dict(zip(BUILT_IN, BUILT_IN, strict=True)) | OWN
GRIDS = {"light-2": [1.0, 3.0, 6.0, 10.0], "high-load-2": [1.0, 10.0, 100.0, 1000.0]}
PLAIN_JOBS = 2_000_000
EVENTS = 1000


@cache
def curve_of(policy: str, model: str) -> TailCurve:
    # With twenty short replications, of which few hold much, Student's intervals would miss more than their share.
    with short_replications(60_000, 256, 40):
        arguments: dict[str, Any] = {"rel_half_width": 0.2, "most_jobs": 2e6, "threads": 2}
        return tail_curve(POLICIES[policy], model, GRIDS[model], seed=1, level=4, **arguments)


@cache
def plain_runs(model: str) -> dict[str, Result]:
    results = simulate(model, list(POLICIES.values()), jobs=PLAIN_JOBS, seed=2, threads=2, progress=False)
    return dict(zip(POLICIES, results.values(), strict=True))


@pytest.mark.parametrize("model", GRIDS)
@pytest.mark.parametrize("policy", POLICIES)
def test_all_jobs_have_been_counted(policy: str, model: str) -> None:
    curve = curve_of(policy, model)
    assert total_within(curve), curve.total
    assert curve.total[1] < (0.5 if model == "light-2" else 2.0)
    assert np.all(np.diff(curve.tail) < 0)
    assert np.all(curve.low <= curve.normalised_tail)
    assert np.all(curve.normalised_tail <= curve.high)


@pytest.mark.parametrize("model", GRIDS)
@pytest.mark.parametrize("policy", POLICIES)
def test_agrees_with_a_plain_run(policy: str, model: str) -> None:
    curve, plain = curve_of(policy, model), plain_runs(model)[policy]
    seen = plain.events(curve.t) >= EVENTS
    assert seen.sum() >= 2
    low, high = plain.tail_interval(curve.t)
    error = np.hypot(standard_error(curve), (high - low) / 2 / student(0.95, 20))
    factor = student(1 - (1 - LEVEL) / seen.sum(), 20)
    gap = abs(curve.tail - plain.tail(curve.t))
    assert np.all(gap[seen] <= factor * error[seen]), (curve.tail, plain.tail(curve.t), error)
    assert np.all(error[:2] < 0.2 * curve.tail[:2])


@pytest.mark.parametrize(("policy", "model"), [("srpt", "light-2"), ("dynasplit", "high-load-2")])
def test_the_level_of_blocks_does_not_matter(policy: str, model: str) -> None:
    curves = [small_curve(policy, model, GRIDS[model][:3], seed=3, level=level) for level in (0, 2, 4, 8)]
    for one, other in combinations(curves, 2):
        errors = np.hypot(standard_error(one), standard_error(other))
        assert np.all(abs(one.tail - other.tail) <= student(1 - (1 - LEVEL) / 3, 20) * errors), (one, other)
        gap = abs(one.total[0] - other.total[0])
        assert gap <= np.hypot(one.total[1], other.total[1]) * student(LEVEL, 20) / student(0.95, 20)


@pytest.mark.parametrize("policy", ["srpt", "fcfs", "ps", "dynasplit"])
@pytest.mark.parametrize("model", GRIDS)
def test_times_much_shorter_than_response_times(policy: str, model: str) -> None:
    """Jobs that have been present for longer than the last time have been counted already, and only once."""
    with short_replications(100_000, 256, 40):
        curve = tail_curve(policy, model, [0.2], rel_half_width=0.03, most_jobs=4e6, level=4, seed=4, threads=2)
    plain = plain_runs(model)[policy]
    low, high = plain.tail_interval([0.2])
    error = np.hypot(standard_error(curve), (high - low) / 2 / student(0.95, 20))
    assert total_within(curve), curve.total
    assert np.all(abs(curve.tail - plain.tail([0.2])) <= student(LEVEL, 20) * error), (curve.tail, plain.tail([0.2]))


def test_ten_servers_at_high_load() -> None:
    curve = small_curve("srpt", "high-load-10", [10.0, 100.0], rel_half_width=0.5, most_jobs=6e7)
    assert curve.reached
    assert curve.level in (10, 20, 40)
    assert total_within(curve), curve.total
    for values in (curve.tail, curve.low, curve.high, curve.plain_jobs):
        assert np.all(np.isfinite(values))
    assert np.all(curve.relative_half_width <= 0.5)


def test_a_curve_says_what_it_is() -> None:
    curve = curve_of("srpt", "high-load-2")
    plain = curve.to_dict()
    assert plain["policy"] == curve.policy == "srpt"
    assert plain["scenario"]["name"] == "high-load-2"
    assert plain["t"] == [1.0, 10.0, 100.0, 1000.0]
    assert plain["level"] == 4
    assert plain["seed"] == 1
    np.testing.assert_allclose(curve.bound, (1 / (3 * 0.4 * curve.t)) ** 1.5)
    np.testing.assert_allclose(curve.tail, curve.normalised_tail * curve.bound)
    np.testing.assert_allclose(curve.relative_half_width, (curve.high - curve.low) / 2 / curve.normalised_tail)


def test_times_if_none_are_given() -> None:
    for model, last in (("high-load-2", 1e6), ("light-2", 10**1.5)):
        times = default_times(scenario(model))
        assert times[0] == 1.0
        assert times[-1] == pytest.approx(last)
        np.testing.assert_allclose(np.diff(np.log10(times)), 0.5)
