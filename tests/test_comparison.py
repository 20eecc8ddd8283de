"""Comparisons of policies on the same jobs: paired differences, and results that do not fit each other."""

import math

import numpy as np
import pytest

from queue_env.comparison import Comparison
from queue_env.tail import Interval, t_interval
from tests.test_result import result


def paired(effect: float, count: int = 10) -> Comparison:
    rng = np.random.default_rng(8)
    base = [rng.exponential(1.0, 300) + rng.exponential(2.0) for _ in range(count)]
    other = [row + effect + 0.1 * rng.random(300) for row in base]
    return Comparison([result(base, policy="srpt"), result(other, policy="ps")])


def test_comparison_is_a_mapping_in_order() -> None:
    found = paired(0.5)
    assert list(found) == ["srpt", "ps"]
    assert len(found) == 2
    assert found["ps"].mean_response > found["srpt"].mean_response
    assert repr(found) == "Comparison of srpt, ps"
    assert found.to_dict() == {label: one.to_dict() for label, one in found.items()}


def test_difference_is_paired() -> None:
    found = paired(0.5)
    difference = found.difference("ps", "srpt")
    rows = (found["ps"].stats["response_sum"] - found["srpt"].stats["response_sum"]) / 300
    assert difference == pytest.approx(t_interval(rows), rel=1e-8)
    assert difference.half_width < found["ps"].interval("mean_response").half_width / 10
    assert found.difference("srpt", "ps").value == -difference.value
    assert found.difference("ps", "ps") == Interval(0.0, 0.0, 0.0, 0.95)


@pytest.mark.parametrize("quantity", ["quantile:0.9", "tail:2", "normalised_tail:2", "std_response"])
def test_differences_of_other_quantities(quantity: str) -> None:
    found = paired(0.5)
    difference = found.difference("ps", "srpt", quantity, level=0.9)
    assert difference.value == found["ps"].value(quantity) - found["srpt"].value(quantity)
    assert 0 < difference.half_width < found["ps"].interval(quantity, 0.9).half_width


def test_difference_of_unseen_tails_has_no_interval() -> None:
    difference = paired(0.5).difference("ps", "srpt", "tail:1e6")
    assert difference.value == 0.0
    assert math.isnan(difference.low)


@pytest.mark.parametrize("level", [0.0, 1.0, 95.0, math.nan])
def test_levels_out_of_range(level: float) -> None:
    found = paired(0.5)
    with pytest.raises(ValueError, match="level must be between 0 and 1"):
        found.difference("ps", "srpt", level=level)
    with pytest.raises(ValueError, match="level must be between 0 and 1"):
        found.to_dict(level)


def test_results_that_do_not_fit() -> None:
    one, other = result([np.array([1.0])] * 2), result([np.array([1.0])] * 3, policy="ps")
    with pytest.raises(ValueError, match="policies must be at least one"):
        Comparison([])
    with pytest.raises(ValueError, match=r"all different, got \['srpt', 'srpt'\]"):
        Comparison([one, one])
    with pytest.raises(ValueError, match=r"lengths of stats must be the same for all policies, got \[2, 3\]"):
        Comparison([one, other])
    with pytest.raises(ValueError, match=r"policy must be one of srpt, ps \(perhaps srpt\), got 'srp'"):
        paired(0.5).difference("srp", "ps")
