"""The tables of sweeps, and what their numbers and axes are called."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from queue_env.report.impatient_style import plain_csv
from queue_env.report.table import Cell, Table

if TYPE_CHECKING:
    from queue_env.scoring.sweep import Sweep
    from queue_env.scoring.sweep_points import Value

__all__ = ["axis_label", "measure_label", "sweep_csv", "sweep_table", "value_text"]

_TIMES = {
    "mean_response": "mean response time",
    "std_response": "standard deviation of response time",
    "mean_waiting": "mean waiting time",
}
_NUMBERS = {
    "score": "tail score",
    "mean_slowdown": "mean slowdown",
    "waited_fraction": "share of jobs that wait",
    "abandonment": "share of jobs that abandon",
    "utilisation": "utilisation",
}
_AXES = {"load": "load ρ [1]", "servers": "number of servers n [1]", "alpha": "index α of the sizes [1]"}


def measure_label(sweep: Sweep) -> str:
    """What was measured, with its unit."""
    name, _, number = sweep.measure.partition(":")
    # A time of one is the mean size, unless the scenario was given in another unit.
    same = all(math.isclose(point.scenario.sizes.mean, 1.0) for point in sweep.points)
    time = "mean service times" if same else "unit of the sizes"
    if name in _TIMES:
        return f"{_TIMES[name]} [{time}]"
    if name in _NUMBERS:
        return f"{_NUMBERS[name]} [1]"
    if name == "throughput":
        return f"throughput [jobs / {time.removesuffix('s') if same else time}]"
    if name == "mean_number":
        return "mean number in system [jobs]"
    if name in ("quantile", "slowdown_quantile"):
        what, unit = ("response time", time) if name == "quantile" else ("slowdown", "1")
        return f"{100 * float(number):.10g} % quantile of {what} [{unit}]"
    if name == "tail":
        return f"P[T > {number}] [1]"
    return f"R({number}) = P[T > t] / P[S > c t], t = {number} [1]"


def axis_label(sweep: Sweep, name: str) -> str:
    """What an axis is, with its unit."""
    kind, _, field = name.partition(".")
    if kind == "sizes":
        return _AXES.get(field, f"{field} of the sizes [1]")
    parameter = f"{field or name} of the policy"
    return _AXES.get(name, parameter if isinstance(sweep.axes[name][0], str) else f"{parameter} [1]")


def value_text(value: Value) -> str:
    """A value of an axis as it is written on a command line."""
    return value if isinstance(value, str) else f"{value:g}"


def sweep_table(sweep: Sweep) -> Table:
    """A row for each point: the number of every policy, and its ratio to the first, on the same jobs."""
    first, *others = sweep.policies
    columns = {policy: sweep.intervals(policy) for policy in sweep.policies}
    columns |= {f"{policy} / {first}": sweep.ratios(policy, first) for policy in others}
    rows: list[tuple[Cell, ...]] = [
        (*map(value_text, point.place.values()), *(cells[k] for cells in columns.values()))
        for k, point in enumerate(sweep.points)
    ]
    return Table(measure_label(sweep), (*sweep.axes, *columns), tuple(rows))


def sweep_csv(sweep: Sweep) -> str:
    """A line for each policy at each point, with all digits; the ratio is to the first policy."""
    rows = sweep.to_list()
    return plain_csv(list(rows[0]), [list(row.values()) for row in rows])
