"""P[served | size] of many servers with impatient jobs: drawn, as tables and as CSV."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from queue_env.report.impatient_style import draw_legend, heading, named, plain_csv, set_ticks
from queue_env.report.style import THICK, line_style, new_figure, tidy
from queue_env.report.table import Cell, Table
from queue_env.tail import Interval

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from queue_env.by_size import SizeClasses
    from queue_env.scoring.impatient_sizes import SizePanel

__all__ = ["sizes_csv", "sizes_figure", "sizes_tables"]

_TABULATED = (0.25, 0.5, 0.8, 1.0, 1.25, 2.0)  # sizes in units of τ
_TICKS = (0.125, 0.25, 0.5, 0.7, 1.0, 1.4, 2.0, 4.0)
_BLIND = line_style(0)["color"]


def sizes_figure(panels: Sequence[SizePanel], title: str) -> Figure:
    """Draw P[served | size] with 95 % bands, sizes in units of τ, and its limits, the panels side by side.

    Raises:
        ImportError: matplotlib is not installed.
    """
    figure = new_figure(6.2 * len(panels), 5.0)
    handles: list[Any] = []
    for place, panel in enumerate(panels):
        axes = figure.add_subplot(1, len(panels), place + 1)
        axes.set(xscale="log", xlabel="size / τ [1]", ylim=(-0.02, 1.04), xlim=(_TICKS[0], _TICKS[-1]))
        axes.set_title(f"{panel.title}: τ = {panel.threshold:.3g} mean service times", loc="left", fontsize=10)
        limits = _draw_limits(axes, panel)
        handles = [_draw(axes, panel, index) for index in range(len(panel.curves))] + limits
        tidy(axes)
        set_ticks(axes.xaxis, _TICKS)
    figure.axes[0].set_ylabel("P[served | size] [1]")
    heading(figure, title)
    draw_legend(figure, handles)
    return figure


def _draw(axes: Any, panel: SizePanel, index: int) -> Any:
    policy, servers, found = panel.curves[index]
    color = _BLIND if policy == "fcfs" else _shade(panel, servers)
    x = np.sqrt(found.edges[:-1] * found.edges[1:]) / panel.threshold
    (line,) = axes.plot(x, found.served, color=color, linewidth=THICK, label=f"{policy}, {named(servers)}")
    axes.fill_between(x, found.low, found.high, color=color, alpha=0.25, linewidth=0)
    return line


def _shade(panel: SizePanel, servers: int) -> Any:
    """The green of a number of servers: the more, the darker."""
    from matplotlib import colormaps

    numbers = sorted({number for _, number, _ in panel.curves})
    return colormaps["Greens"](0.25 + 0.75 * (numbers.index(servers) + 1) / len(numbers))


def _draw_limits(axes: Any, panel: SizePanel) -> list[Any]:
    style: dict[str, Any] = {"linewidth": 1.2, "linestyle": "--"}
    (step,) = axes.plot([1e-9, 1, 1, 1e9], [1, 1, 0, 0], color="black", label="srpt, limit", **style)
    blind = axes.axhline(panel.blind, color=_BLIND, label="fcfs, limit 1/ρ", **style)
    return [step, blind]


def sizes_csv(panels: Sequence[SizePanel]) -> str:
    """P[served | size] of all classes as CSV."""
    keys = ("from", "to", "jobs", "value", "low", "high")
    rows = [
        (panel.name, policy, servers, panel.threshold, *(row[key] for key in keys))
        for panel in panels
        for policy, servers, found in panel.curves
        for row in found.to_list()
    ]
    return plain_csv(("panel", "policy", "servers", "tau", *keys[:3], "served", *keys[4:]), rows)


def sizes_tables(panels: Sequence[SizePanel]) -> list[Table]:
    """A table for each panel: P[served | size] in the classes of some sizes."""
    tables = []
    for panel in panels:
        rows = [
            (f"{policy}, {named(servers)}", *(_class_of(found, x * panel.threshold) for x in _TABULATED))
            for policy, servers, found in panel.curves
        ]
        title = f"P[served | size] by size/τ: {panel.title}, τ = {panel.threshold:.4g}"
        tables.append(Table(title, ("system", *(f"{x:g}" for x in _TABULATED)), tuple(rows)))
    return tables


def _class_of(found: SizeClasses, size: float) -> Cell:
    k = int(np.searchsorted(found.edges, size, side="right")) - 1
    if not 0 <= k < len(found.jobs):
        return None
    return Interval(float(found.served[k]), float(found.low[k]), float(found.high[k]), found.level)
