"""Scores: means of the cost over a plain run's jobs, comparisons, and rows.

Two checks by 99.9 % intervals (Student's, over batches and replications): a correct estimator would fail one of them
for a fraction of at most 0.002 of the choices of seeds.
"""

from __future__ import annotations

import json
import math
from functools import cache
from typing import Any

import numpy as np
import pytest

from queue_env import Scores, score, score_all, simulate
from queue_env.reward import tail_cost
from queue_env.scenarios import scenario
from tests.intervals import mean_over
from tests.scoring.small import LEVEL, short_replications, student

RANGE = (1.0, 10.0)
PLAIN_JOBS = 100_000
KEYS = {
    "policy", "scenario", "score", "score_low", "score_high", "normalised_tail", "mean_response", "mean_response_low",
    "mean_response_high", "mean_slowdown", "throughput", "abandonment", "quantiles", "jobs", "seconds", "seed",
    "reached", "version", "model", "beats",
}  # fmt: skip


@cache
def scores() -> Scores:
    with short_replications():
        return score_all(
            ["fcfs", "srpt", "dynasplit"],
            "light-2",
            tail_range=RANGE,
            rel_half_width=0.05,
            plain_jobs=PLAIN_JOBS,
            most_jobs=2e6,
            seed=3,
            threads=2,
            progress=False,
        )


@pytest.mark.parametrize("policy", ["fcfs", "srpt"])
def test_a_score_is_the_mean_cost_of_a_job(policy: str) -> None:
    model = scenario("light-2")
    records = simulate(model, policy, jobs=1_000_000, seed=4, records=True, progress=False).records
    assert records is not None
    costs = tail_cost(model, RANGE).of(records["departure_time"] - records["arrival_time"])
    mean = mean_over(costs, np.ones(len(costs), np.bool_))
    row = scores().named(policy)
    assert row.estimate is not None
    half = math.hypot(
        mean.half_width / student(LEVEL, 40), float(row.estimate.half_width(LEVEL)[1]) / student(LEVEL, 20)
    )
    assert half < 0.05 * mean.value
    assert abs(row.score - mean.value) <= student(LEVEL, 20) * half, (row.score, mean)


def test_scores_are_sorted_and_found_by_name() -> None:
    found = scores()
    assert [row.score for row in found] == sorted(row.score for row in found)
    assert found[-1].policy == "fcfs"
    assert found.named("fcfs") is found[-1]
    assert len(found) == 3
    for row in found:
        assert row.low < row.score < row.high
        np.testing.assert_allclose(row.t, [1.0, 10.0])
        assert np.all(row.tail_low <= row.normalised_tail)
        assert np.all(row.normalised_tail <= row.tail_high)
    with pytest.raises(ValueError, match="one of"):
        found.named("ps")


def test_differences() -> None:
    for a, b in (("srpt", "fcfs"), ("srpt", "dynasplit")):
        value, low, high, better = scores().difference(a, b)
        back, back_low, back_high, worse = scores().difference(b, a)
        assert value == scores().named(a).score - scores().named(b).score
        np.testing.assert_allclose([back, back_low, back_high], [-value, -high, -low], rtol=1e-12)
        assert better + worse == pytest.approx(1, abs=1e-12)
        assert low < value < high
    assert scores().difference("srpt", "fcfs")[3] > 0.99
    _, low, high, _ = scores().difference("srpt", "fcfs", level=0.5)
    assert high - low < scores().difference("srpt", "fcfs")[2] - scores().difference("srpt", "fcfs")[1]
    assert scores().difference("srpt", "srpt") == (0.0, 0.0, 0.0, 0.5)


def test_rows_are_plain_data() -> None:
    rows = json.loads(json.dumps(scores().to_list(), allow_nan=False))
    labels = {row["policy"] for row in rows}
    for row in rows:
        assert set(row) >= KEYS
        assert row["scenario"] == "light-2"
        assert [set(entry) for entry in row["normalised_tail"]] == [{"t", "value", "low", "high"}] * 2
        assert set(row["beats"]) == labels - {row["policy"]}
        assert row["abandonment"] == 0
        for other in rows:
            if other is not row:
                assert row["beats"][other["policy"]] + other["beats"][row["policy"]] == pytest.approx(1, abs=1e-12)


def test_patience_leaves_no_score() -> None:
    policies: list[Any] = ["fcfs", "srpt"]
    found = score_all(policies, "impatient-100", plain_jobs=PLAIN_JOBS, seed=5, threads=2, progress=False)
    rows = json.loads(json.dumps(found.to_list(), allow_nan=False))
    for row in rows:
        assert row["score"] is None
        assert row["score_low"] is None
        assert row["normalised_tail"] == []
        assert row["beats"] == {}
        assert row["reached"]
        assert 0 < row["abandonment"] < 1
        assert row["mean_response"] > 0
    with pytest.raises(ValueError, match="tail score"):
        found.difference("fcfs", "srpt")


def test_policies_must_differ() -> None:
    with pytest.raises(ValueError, match="all different"):
        simulate("light-2", ["srpt", "srpt"], jobs=10)
    with pytest.raises(ValueError, match="all different"), short_replications():
        score_all(["srpt", "srpt"], "impatient-100", plain_jobs=1000, progress=False)
    with pytest.raises(ValueError, match="at least one"):
        score_all([], "light-2")
    with short_replications():
        assert math.isnan(score("srpt", "impatient-100", plain_jobs=1000, progress=False).score)
