"""Classes of sizes, and what the decomposition holds for."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from queue_env import Scenario, law, scenario
from queue_env.scoring.strata import Strata, check_decomposable, make_strata

LAWS: list[dict[str, Any]] = [
    {"law": "pareto", "alpha": 1.5, "mean": 1.0},
    {"law": "pareto", "alpha": 3.0, "mean": 2.0},
    {"law": "exponential", "mean": 1.0},
    {"law": "weibull", "shape": 0.5, "mean": 1.0},
    {"law": "uniform", "low": 1.0, "high": 3.0},
]


@pytest.mark.parametrize("largest", [0.1, 10.0, 1e6])
@pytest.mark.parametrize("spec", LAWS, ids=lambda spec: spec["law"])
def test_classes_share_out_the_law(spec: dict[str, Any], largest: float) -> None:
    strata = make_strata(law(spec), largest)
    assert len(strata) == len(strata.probabilities) == len(strata.edges) - 1
    assert strata.probabilities.sum() == pytest.approx(1, rel=1e-12)
    assert np.all(strata.probabilities > 0)
    assert np.all(np.diff(strata.edges) > 0)
    assert np.all(strata.probabilities[3:-1] <= 0.91 * strata.tails[3:-2])


@pytest.mark.parametrize("spec", LAWS, ids=lambda spec: spec["law"])
def test_sizes_are_drawn_within_their_classes(spec: dict[str, Any]) -> None:
    strata = make_strata(law(spec), 100.0)
    rng = np.random.default_rng(1)
    classes = rng.integers(len(strata), size=5000)
    sizes = strata.draw(classes, rng.random(5000))
    slack = 1e-9 * sizes
    assert np.all(sizes >= strata.edges[classes] - slack)
    assert np.all(sizes <= strata.edges[classes + 1] + slack)
    falling = strata.draw(np.zeros(9, np.int64), np.linspace(0.1, 0.9, 9))
    assert np.all(np.diff(falling) < 0)


def test_the_mean_of_a_class_is_that_of_the_law() -> None:
    strata = make_strata(law({"law": "exponential", "mean": 1.0}), 10.0)
    uniforms = (np.arange(2000) + 0.5) / 2000
    for k in range(6):
        low, high = strata.edges[k : k + 2]
        inside = ((low + 1) * np.exp(-low) - (high + 1) * np.exp(-high)) / (np.exp(-low) - np.exp(-high))
        assert strata.draw(np.full(2000, k), uniforms).mean() == pytest.approx(inside, rel=1e-3)


def test_light_tails_take_few_classes() -> None:
    """Sizes of probability far below the tail at the last time decide nothing, and each class takes runs."""
    strata = make_strata(law({"law": "exponential", "mean": 1.0}), 10.0)
    assert len(strata) < 60


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"patience": {"law": "exponential", "mean": 1.0}}, "patience"),
        ({"patience": {"law": "exponential", "mean": 1.0}, "load": 1.2}, "patience"),
        ({"sizes": {"law": "deterministic", "value": 1.0}}, "atoms"),
        ({"sizes": {"law": "empirical", "values": [1.0, 2.0]}}, "atoms"),
        ({"arrivals": {"process": "mmpp", "rates": [1.0, 3.0], "generator": [[-1.0, 1.0], [1.0, -1.0]]}}, "arrivals"),
        (
            {"arrivals": {"process": "batch", "batch": {"law": "fixed", "count": 2}, "epochs": {"process": "poisson"}}},
            "arrivals",
        ),
    ],
)
def test_what_the_decomposition_does_not_hold_for(changes: dict[str, Any], message: str) -> None:
    model = Scenario.from_dict(
        {"servers": 2, "load": 0.5, "sizes": {"law": "exponential", "mean": 1.0}, **changes},
    )
    with pytest.raises(ValueError, match=f"tail_curve.*{message}"):
        check_decomposable(model, "tail_curve")


def test_what_it_holds_for() -> None:
    renewal = {"process": "renewal", "law": {"law": "uniform", "low": 0.5, "high": 1.5}}
    for arrivals in ({"process": "poisson"}, renewal):
        sizes = {"law": "pareto", "alpha": 1.5, "mean": 1.0}
        model = Scenario.from_dict({"servers": 2, "load": 0.5, "sizes": sizes, "arrivals": arrivals})
        check_decomposable(model, "tail_curve")


def test_long_runs_are_foreseen_to_add_their_own_job_and_what_the_pace_says() -> None:
    model = scenario("high-load-2")  # a block of a large job of size x lasts x/0.4
    strata = Strata(model.sizes, np.array([1.0, 1e-2, 1e-4, 0.0]))
    found = strata.foreseen(model, 20.0, np.array([1.0, 0.5]), np.array([0.2, 0.0]))
    lasts = strata.medians / 0.4
    assert lasts[0] < 20.0 < lasts[1]
    assert np.isnan(found[0]).all()
    np.testing.assert_allclose(found[1:, 0], 1.0 + 0.2 * lasts[1:])
    np.testing.assert_allclose(found[1:, 1], 0.5)
