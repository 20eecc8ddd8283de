"""The tables of results: response time, normalised tail, abandonment, and paired differences."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from queue_env.report.table import Cell, Table
from queue_env.result import QUANTILES
from queue_env.tail import Interval

if TYPE_CHECKING:
    from queue_env.comparison import Comparison
    from queue_env.result import Result

__all__ = [
    "FEWEST_EVENTS",
    "difference_table",
    "has_normalised_tail",
    "headline",
    "is_seen",
    "paired_differences",
    "result_tables",
    "speed",
    "time_unit",
]

Column: TypeAlias = "Callable[[Result], Cell]"

DIFFERENCES = {
    "mean response": "mean_response",
    "mean slowdown": "mean_slowdown",
    "p99 response": "quantile:0.99",
}
"""Quantities of which paired differences are shown: title, and name in `Result.interval`."""

DECADES = tuple(10.0**k for k in range(7))
"""Where the normalised tail is tabulated, in mean service times, as far as it was seen."""

FEWEST_EVENTS = 10
"""A tail is shown only where at least so many jobs lie beyond."""

TRACE_QUANTILES = QUANTILES[:-1]
"""A trace is too short for the last."""


def headline(results: Comparison, name: str) -> str:
    """What was simulated, in one line that begins with the name of the scenario or the trace."""
    result = next(iter(results.values()))
    line = f"{name}: {_count(result.servers, 'server')}, load {result.load:.3g}"
    if has_normalised_tail(result):
        line += f", c = min(1, spare) = {min(1.0, result.spare):.3g}"
    line += f"; {_count(result.jobs, 'job')}"
    if result.scenario is not None:
        line += f" in {_count(result.streams, 'stream')}, seed {result.seed}"
    return line


def speed(results: Comparison) -> str:
    """How many jobs were simulated under all policies together, and how fast."""
    seconds = next(iter(results.values())).seconds  # the policies run side by side
    jobs = sum(result.simulated for result in results.values())
    rate = float(f"{jobs / seconds:.3g}")
    return f"{jobs:,} jobs simulated in {seconds:.3g} s, {rate:,.0f} jobs/s"


def has_normalised_tail(result: Result) -> bool:
    """Whether P[T > t] / P[S > c t] says something: known sizes, spare capacity, and no job that gives up."""
    return result.scenario is not None and result.scenario["patience"] is None and result.spare > 0


def result_tables(results: Comparison) -> list[Table]:
    """The tables of a comparison: a row for each policy, intervals of 95 %."""
    first = next(iter(results.values()))
    if first.scenario is None:
        tables = [
            _table(results, "Response time [s]", _response_columns(), "response"),
            _table(results, "Slowdown", _slowdown_columns(), "slowdown"),
        ]
    else:
        tables = [
            _table(results, "Response time and slowdown", _mean_columns()),
            _table(results, "Quantiles of response time", _quantile_columns(), "response"),
        ]
    decades = _decade_columns(results) if has_normalised_tail(first) else {}
    if decades:
        title = "Normalised tail R(t) = P[T > t] / P[S > c t], t in mean service times"
        tables.append(_table(results, title, decades))
    if any(result.abandoned for result in results.values()):
        tables.append(_table(results, "Throughput and abandonment", _patience_columns()))
        title = "P[served | size], in classes of about a tenth of the jobs, by the largest size in each"
        tables.append(_table(results, title, _size_columns(first), "served of size"))
    if any(result.present for result in results.values()):
        columns: dict[str, Column] = {"present": lambda result: result.present}
        tables.append(_table(results, "Counted jobs that are still present, in none of the above", columns))
    return tables


def paired_differences(results: Comparison) -> dict[str, dict[str, Interval]]:
    """Each policy less the first, on the same jobs: intervals by policy and by quantity in `DIFFERENCES`."""
    first, *others = results
    return {other: {name: results.difference(other, first, name) for name in DIFFERENCES.values()} for other in others}


def difference_table(results: Comparison) -> Table:
    """The table of `paired_differences`."""
    rows = tuple(_row(policy, found.values()) for policy, found in paired_differences(results).items())
    title = f"Difference to {next(iter(results))}, on the same jobs"
    return Table(title, ("policy", *DIFFERENCES), rows, "difference")


def is_seen(result: Result, t: ArrayLike) -> NDArray[np.bool_]:
    """Where at least `FEWEST_EVENTS` served jobs were longer in the system than t, shape of t."""
    return np.asarray(result.events(t) >= FEWEST_EVENTS)


def time_unit(result: Result) -> float:
    """What reports count time in: mean service times, for a trace seconds."""
    return 1.0 if result.scenario is None else float(result.sizes.mean)


def _table(results: Comparison, title: str, columns: Mapping[str, Column], group: str = "") -> Table:
    rows = tuple(_row(policy, (cell(result) for cell in columns.values())) for policy, result in results.items())
    return Table(title, ("policy", *columns), rows, group)


def _row(name: str, cells: Iterable[Cell]) -> tuple[Cell, ...]:
    return (name, *cells)


def _mean_columns() -> dict[str, Column]:
    return {
        "mean response": _interval_of("mean_response"),
        "mean slowdown": _interval_of("mean_slowdown"),
        "max response": lambda result: result.max_response,
        "max slowdown": lambda result: result.max_slowdown,
    }


def _quantile_columns() -> dict[str, Column]:
    return {_percentile(q): _value_of(f"quantile:{q}") for q in QUANTILES}


def _response_columns() -> dict[str, Column]:
    quantiles = {_percentile(q): _value_of(f"quantile:{q}") for q in TRACE_QUANTILES}
    return {"mean": _interval_of("mean_response"), **quantiles, "max": lambda result: result.max_response}


def _slowdown_columns() -> dict[str, Column]:
    quantiles = {_percentile(q): _value_of(f"slowdown_quantile:{q}") for q in TRACE_QUANTILES}
    return {"mean": _interval_of("mean_slowdown"), **quantiles, "max": lambda result: result.max_slowdown}


def _patience_columns() -> dict[str, Column]:
    quantities = ("throughput", "abandonment", "mean_waiting", "utilisation")
    return {quantity.replace("_", " "): _interval_of(quantity) for quantity in quantities}


def _size_columns(first: Result) -> dict[str, Column]:
    edges = first.by_size().edges
    return {f"to {end:.3g}": _served_in(k, edges) for k, end in enumerate(edges[1:])}


def _served_in(k: int, edges: NDArray[np.float64]) -> Column:
    return lambda result: float(result.by_size(edges).served[k])


def _percentile(q: float) -> str:
    return f"p{100 * q:g}"


def _interval_of(quantity: str) -> Column:
    return lambda result: result.interval(quantity)


def _value_of(quantity: str) -> Column:
    return lambda result: result.value(quantity)


def _decade_columns(results: Comparison) -> dict[str, Column]:
    unit = time_unit(next(iter(results.values())))
    seen = [t for t in DECADES if any(is_seen(result, t * unit) for result in results.values())]
    return {f"R({t:g})": _normalised_at(t * unit) for t in seen}


def _normalised_at(t: float) -> Column:
    def cell(result: Result) -> Cell:
        return result.interval(f"normalised_tail:{t}") if is_seen(result, t) else None

    return cell


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'s' * (number != 1)}"
