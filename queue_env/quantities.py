"""The quantities of a result that have an interval: their names, and how each follows from the rows of a run."""

from __future__ import annotations

import math
from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from queue_env.arrivals import suggestion
from queue_env.distributions.checks import refuse
from queue_env.kernel.layout import STATS
from queue_env.tail import Estimate, check_times, jackknife, quantile_from_counts, quotient, tail_estimate

if TYPE_CHECKING:
    from queue_env.result import Result

__all__ = ["PARAMETRIC_QUANTITIES", "QUANTITIES", "check_quantity", "check_spare", "estimate"]


class _Ratio(NamedTuple):
    """A quantity that is a sum over rows or systems divided by another, and the largest value it can have."""

    over: str
    under: tuple[str, ...]
    most: float = math.inf


_LEFT = ("served", "abandoned")
_RATIOS: Mapping[str, _Ratio] = {
    "mean_response": _Ratio("response_sum", ("served",)),
    "mean_slowdown": _Ratio("slowdown_sum", ("served",)),
    "mean_waiting": _Ratio("waiting_sum", _LEFT),
    "waited_fraction": _Ratio("waited", _LEFT, most=1.0),
    "abandonment": _Ratio("abandoned", (*_LEFT, "present"), most=1.0),
    "throughput": _Ratio("served_in_window", ("window",)),
    "mean_number": _Ratio("number_area", ("window",)),
    "utilisation": _Ratio("busy_area", ("capacity",), most=1.0),
}

QUANTITIES = (*_RATIOS, "std_response")
"""Quantities of a result that have an interval, by name; each is a property too."""

PARAMETRIC_QUANTITIES = ("quantile", "slowdown_quantile", "tail", "normalised_tail")
"""Quantities that take a number after a colon: "quantile:0.99", "tail:10"; each is a method too."""


def check_quantity(quantity: str, spare: float) -> tuple[str, float]:
    """Split the name of a quantity into its kind and its number, which is NaN where it has none.

    Args:
        quantity: a name among `QUANTITIES`, or one of `PARAMETRIC_QUANTITIES` with a number.
        spare: spare capacity δ of the system, in servers.

    Raises:
        ValueError: there is no such quantity, or not on such a system, or its number is out of range.
    """
    if quantity in QUANTITIES:
        return quantity, math.nan
    kind, number = _parsed(quantity)
    if kind in ("quantile", "slowdown_quantile"):
        if not 0 < number < 1:
            refuse("result", f"number after {kind}", "between 0 and 1, both excluded", number)
        return kind, number
    check_times(number)
    if kind == "normalised_tail":
        check_spare(spare)
    return kind, number


def check_spare(spare: float) -> None:
    """Raise a ValueError unless there is spare capacity, without which no tail can be normalised."""
    if not spare > 0:
        refuse("normalised_tail", "spare", "> 0: there is no bound on the tail in overload", spare)


def estimate(result: Result, quantity: str) -> Estimate:
    """The quantity of a name, from all rows of a result and from all but one.

    Raises:
        ValueError: as `check_quantity`.
    """
    kind, number = check_quantity(quantity, result.spare)
    if kind in _RATIOS:
        over, under, most = _RATIOS[kind]
        sums = _columns(result, over, *under)
        return jackknife(sums, lambda sums: quotient(sums[..., 0], sums[..., 1:].sum(axis=-1)), most)
    if kind == "std_response":
        return jackknife(_columns(result, "response_square_sum", "response_sum", "served"), _standard_deviation)
    if kind == "tail":
        return tail_estimate(result.response_counts, number)
    if kind == "normalised_tail":
        return tail_estimate(result.response_counts, number).divided_by(result.tail_bound(number))
    responses = kind == "quantile"
    counts = result.response_counts if responses else result.slowdown_counts
    largest = result.max_response if responses else result.max_slowdown
    return jackknife(counts, lambda sums: np.minimum(quantile_from_counts(sums, number), largest))


def _columns(result: Result, *names: str) -> NDArray[Any]:
    """Fields of the statistics, one number a row, or attributes of the result, one number a system."""
    fields = STATS.names or ()
    return np.stack([result.stats[name] if name in fields else getattr(result, name) for name in names], axis=-1)


def _standard_deviation(sums: NDArray[Any]) -> NDArray[np.float64]:
    square, mean = (quotient(sums[..., k], sums[..., 2]) for k in (0, 1))
    return np.sqrt(np.maximum(square - mean**2, 0.0))


def _parsed(quantity: str) -> tuple[str, float]:
    """Split the name of a parametric quantity; ValueError unless it is one, with a number."""
    kind, _, argument = quantity.partition(":")
    with suppress(ValueError):
        if kind in PARAMETRIC_QUANTITIES:
            return kind, float(argument)
    names = (*QUANTITIES, *(f"{name}:NUMBER" for name in PARAMETRIC_QUANTITIES))
    refuse("result", "quantity", f"one of {', '.join(names)}{suggestion(kind, names)}", quantity)
