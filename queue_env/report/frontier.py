"""The figure and the table of what policies give at two times."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from queue_env.report.style import line_style, new_figure, set_plain_ticks, tidy
from queue_env.report.table import Table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from queue_env.scoring.frontier import FrontierPoint

__all__ = ["frontier_figure", "frontier_table"]

_MARKERS = "osD^vP*X"


def frontier_table(points: Sequence[FrontierPoint], times: Sequence[float], title: str) -> Table:
    """Both values of each policy, the least at the later time first, and which policies are below it at both."""
    rows = sorted(points, key=lambda point: point.far.value)
    return Table(
        title,
        ("policy", *(f"R({time:g})" for time in times), "below it at both"),
        tuple((row.policy, row.near, row.far, ", ".join(p.policy for p in points if p.beats(row))) for row in rows),
    )


def frontier_figure(points: Sequence[FrontierPoint], times: Sequence[float], title: str) -> Figure:
    """Draw each policy as a point with 95 % intervals: R at the earlier time across, at the later one upwards.

    Raises:
        ImportError: matplotlib is not installed.
    """
    figure = new_figure(8, 5)
    axes = figure.add_subplot()
    axes.set(xscale="log", yscale="log")
    axes.set_xlabel(f"P[T > t] / P[S > c t] at t = {times[0]:g} mean service times")
    axes.set_ylabel(f"at t = {times[1]:g} mean service times")
    axes.set_title(title, loc="left", fontsize=10)
    for index, point in enumerate(points):
        (x, left, right, _), (y, low, high, _) = point.near, point.far
        axes.errorbar(
            [x],
            [y],
            xerr=[[max(x - left, 0.0)], [max(right - x, 0.0)]],  # intervals end at 0, estimates may be below
            yerr=[[max(y - low, 0.0)], [max(high - y, 0.0)]],
            color=line_style(index)["color"],
            marker=_MARKERS[index % len(_MARKERS)],
            linestyle="none",
            elinewidth=1,
            label=point.policy,
        )
    tidy(axes)
    for axis in (axes.xaxis, axes.yaxis):
        set_plain_ticks(axis)
    axes.legend(loc="center left", bbox_to_anchor=(1.01, 0.5), frameon=False)
    return figure
