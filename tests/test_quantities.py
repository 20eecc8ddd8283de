"""Names of quantities: which there are, on which systems, and with which numbers."""

import math

import pytest

from queue_env.quantities import PARAMETRIC_QUANTITIES, QUANTITIES, check_quantity
from tests.test_result import pareto_result


@pytest.mark.parametrize("quantity", QUANTITIES)
def test_plain_quantities_have_no_number(quantity: str) -> None:
    kind, number = check_quantity(quantity, spare=-1.0)
    assert kind == quantity
    assert math.isnan(number)


@pytest.mark.parametrize("kind", PARAMETRIC_QUANTITIES)
def test_parametric_quantities_have_one(kind: str) -> None:
    assert check_quantity(f"{kind}:0.25", spare=0.4) == (kind, 0.25)


def test_without_spare_capacity_there_is_a_tail_but_no_normalised_one() -> None:
    assert check_quantity("tail:10", spare=0.0) == ("tail", 10.0)
    with pytest.raises(ValueError, match="spare must be > 0: there is no bound on the tail in overload, got 0"):
        check_quantity("normalised_tail:10", spare=0.0)


@pytest.mark.parametrize(
    "quantity", ["mean", "", "tail", "tail:", "tail:x", "max_response", "mean_response:3", "sizes:1"]
)
def test_unknown_quantities(quantity: str) -> None:
    with pytest.raises(ValueError, match=r"quantity must be one of mean_response, .*tail:NUMBER.*, got '"):
        pareto_result().interval(quantity)


def test_misspelt_quantities_are_offered_the_right_one() -> None:
    with pytest.raises(ValueError, match="perhaps mean_response"):
        pareto_result().interval("mean_respons")


@pytest.mark.parametrize("quantity", ["quantile:0", "quantile:1", "slowdown_quantile:1.5", "quantile:nan"])
def test_quantiles_without_interval(quantity: str) -> None:
    with pytest.raises(ValueError, match="quantile must be between 0 and 1, both excluded"):
        pareto_result().interval(quantity)
