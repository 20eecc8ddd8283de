"""The figures of [I] with simulated points: drawn, as tables and as CSV.

[I] is Dong and Ibrahim, "On the SRPT scheduling discipline in many-server queues with impatient customers" (2021).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from queue_env.report.impatient_style import draw_legend, heading, mark, marks, named, plain_csv, set_ticks
from queue_env.report.style import THICK, line_style, new_figure, tidy
from queue_env.report.table import Cell, Table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from queue_env.scoring.impatient_curves import PanelData
    from queue_env.tail import Interval

__all__ = ["curves_csv", "curves_figure", "curves_tables"]

_LABELS = {
    "mean_waiting": "mean waiting E[W] [mean service times]",
    "throughput": "throughput, as a share of the arrivals [1]",
}
_DASHES = {"lcfs": (0, (4, 3))}  # so that the limit of fcfs is seen where both are the same


def curves_figure(panels: Sequence[PanelData], title: str) -> Figure:
    """Draw the limits as curves and simulated systems as points with 95 % intervals, the panels side by side.

    Args:
        panels: of one quantity.
        title: over all panels.

    Raises:
        ImportError: matplotlib is not installed.
    """
    figure = new_figure(6.2 * len(panels), 5.2)
    quantity, left = panels[0].panel.quantity, None
    for place, data in enumerate(panels):
        axes = figure.add_subplot(1, len(panels), place + 1, sharey=left)
        _draw_panel(axes, data)
        if left is None:
            left = axes
            axes.set_ylabel(_LABELS[quantity])
    assert left is not None
    shares = quantity == "throughput"
    left.set_ylim(bottom=None if shares else 0.0, top=1.002 if shares else None)
    heading(figure, title)
    handles = [_legend_line(curve.policy, index) for index, curve in enumerate(panels[0].curves)]
    draw_legend(figure, handles + marks(_servers(panels[0])))
    return figure


def _draw_panel(axes: Any, data: PanelData) -> None:
    panel, servers = data.panel, _servers(data)
    axes.set(xscale="log", xlabel=f"{panel.axis} [1]")
    axes.set_title(panel.title, loc="left", fontsize=10)
    for index, curve in enumerate(data.curves):
        axes.plot(curve.shape, curve.value, linewidth=THICK, **_line(curve.policy, index))
    for index, curve in enumerate(data.curves):
        for size, number in enumerate(servers):
            points = [point for point in data.points if (point.policy, point.servers) == (curve.policy, number)]
            style = mark(size, len(servers), line_style(index)["color"])
            _draw_points(axes, [point.shape for point in points], [point.found for point in points], style)
    tidy(axes)
    set_ticks(axes.xaxis, [*panel.ends, *panel.simulated])


def _draw_points(axes: Any, shapes: Sequence[float], found: Sequence[Interval], style: dict[str, Any]) -> None:
    ends = np.array([[i.value - i.low for i in found], [i.high - i.value for i in found]])
    values = [interval.value for interval in found]
    axes.errorbar(shapes, values, yerr=np.nan_to_num(ends), ecolor=style["markeredgecolor"], elinewidth=1, **style)


def _line(policy: str, index: int) -> dict[str, Any]:
    return line_style(index) | ({"linestyle": _DASHES[policy]} if policy in _DASHES else {})


def _legend_line(policy: str, index: int) -> Any:
    from matplotlib.lines import Line2D

    return Line2D([], [], linewidth=THICK, label=f"{policy}, limit", **_line(policy, index))


def _servers(data: PanelData) -> list[int]:
    return sorted({point.servers for point in data.points})


def curves_csv(panels: Sequence[PanelData]) -> str:
    """All points as CSV, and the curves, which have no number of servers and no interval."""
    rows: list[Sequence[Any]] = []
    for data in panels:
        name, quantity = data.panel.name, data.panel.quantity
        for curve in data.curves:
            pairs = zip(curve.shape.tolist(), curve.value.tolist(), strict=True)
            rows += [(name, curve.policy, quantity, "", shape, value, "", "", value) for shape, value in pairs]
        rows += [
            (name, point.policy, quantity, point.servers, point.shape, *point.found[:3], point.limit)
            for point in data.points
        ]
    return plain_csv(("panel", "policy", "quantity", "servers", "shape", "value", "low", "high", "limit"), rows)


def curves_tables(panels: Sequence[PanelData]) -> list[Table]:
    """A table for each panel: a row for each shape and policy, with the limit and each number of servers."""
    return [_table(data) for data in panels]


def _table(data: PanelData) -> Table:
    servers = _servers(data)
    found = {(point.shape, point.policy, point.servers): point for point in data.points}
    rows: list[tuple[Cell, ...]] = []
    for shape in data.panel.simulated:
        for curve in data.curves:
            points = [found[shape, curve.policy, number] for number in servers]
            rows.append((f"{shape:g}", curve.policy, points[0].limit, *(point.found for point in points)))
    title = f"{_LABELS[data.panel.quantity].partition(' [')[0]}: {data.panel.title}"
    columns = (data.panel.axis, "policy", "limit", *(named(number) for number in servers))
    return Table(title[0].upper() + title[1:], columns, tuple(rows))
