"""Where FCFS and SRPT wait equally long: drawn, as a table and as CSV."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from queue_env.report.impatient_style import GREY, draw_legend, mark, marks, plain_csv, set_ticks
from queue_env.report.style import THICK, line_style, new_figure, tidy
from queue_env.report.table import Cell, Table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from queue_env.scoring.impatient_crossing import Crossing, CrossingData
    from queue_env.tail import Interval

__all__ = ["crossing_csv", "crossing_figure", "crossing_table"]

_FCFS, _SRPT = line_style(0)["color"], line_style(2)["color"]
_TICKS = (0.3, 0.4, 0.5, 0.7, 1.0, 1.5, 2.0, 3.0, 4.0)
_FRAME = (0.2, 1.05)


def crossing_figure(data: CrossingData, title: str) -> Figure:
    """Draw the curve below which FCFS has the smaller mean waiting, and the crossings of finite systems.

    Raises:
        ImportError: matplotlib is not installed.
    """
    figure = new_figure(8, 6)
    axes = figure.add_subplot()
    axes.set(xscale="log", xlabel="shape of the Weibull service [1]", ylabel="shape of the Weibull patience [1]")
    axes.set_title(title, loc="left", fontsize=10)
    axes.fill_between(data.service, 0, data.patience, color=_FCFS, alpha=0.10, linewidth=0)
    axes.fill_between(data.service, data.patience, _FRAME[1], color=_SRPT, alpha=0.08, linewidth=0)
    (limit,) = axes.plot(data.service, data.patience, color="black", linewidth=THICK, label="limit")
    exponential = axes.axhline(1.0, color=GREY, linewidth=1, linestyle=":", label="exponential patience")
    servers = sorted({crossing.servers for crossing in data.crossings if crossing.servers is not None})
    for crossing in data.crossings:
        if crossing.servers is not None and crossing.shape is not None:
            _draw_crossing(axes, crossing, crossing.shape, servers)
    axes.set(xlim=(data.service[0], data.service[-1]), ylim=_FRAME)
    axes.text(0.97, 0.06, "FCFS waits less", transform=axes.transAxes, ha="right", color=_FCFS, fontsize=12)
    axes.text(0.03, 0.88, "SRPT waits less", transform=axes.transAxes, va="top", color=_SRPT, fontsize=12)
    tidy(axes)
    set_ticks(axes.xaxis, _TICKS)
    draw_legend(figure, [limit, *marks(servers), exponential])
    return figure


def _draw_crossing(axes: Any, crossing: Crossing, shape: Interval, servers: Sequence[int]) -> None:
    ends = [[shape.value - shape.low], [shape.high - shape.value]]
    style = mark(servers.index(crossing.servers or 0), len(servers), GREY) | {"ecolor": GREY, "elinewidth": 1}
    if crossing.varied == "patience":
        axes.errorbar([crossing.fixed], [shape.value], yerr=ends, **style)
    else:
        axes.errorbar([shape.value], [crossing.fixed], xerr=ends, **style)


def crossing_csv(data: CrossingData) -> str:
    """The curve and all crossings as CSV; what has no number of servers is the limit, `low`, `high` of the varied."""
    rows: list[Sequence[Any]] = [
        ("", service, patience, "", "", "", "")
        for service, patience in zip(data.service.tolist(), data.patience.tolist(), strict=True)
    ]
    for crossing in data.crossings:
        if crossing.shape is not None:
            place = [crossing.fixed, crossing.shape.value]
            service, patience = place if crossing.varied == "patience" else place[::-1]
            ends = crossing.shape[1:3]
            rows.append((crossing.servers or "", service, patience, crossing.varied, *ends, crossing.mean_waiting))
    return plain_csv(("servers", "service", "patience", "varied", "low", "high", "mean_waiting"), rows)


def crossing_table(data: CrossingData) -> Table:
    """Where E[W] of fcfs and of srpt are equal: a row for each crossing that was sought."""
    title = f"Where FCFS and SRPT wait equally long, load {data.load:g}"
    columns = ("servers", "shape of the service", "shape of the patience", "E[W]")
    return Table(title, columns, tuple(_row(crossing) for crossing in data.crossings))


def _row(crossing: Crossing) -> tuple[Cell, ...]:
    found: Cell = "none in the range" if crossing.shape is None else crossing.shape
    ends: tuple[Cell, ...] = (f"{crossing.fixed:g}", found)
    number = "limit" if crossing.servers is None else f"{crossing.servers:,}"
    waiting = None if math.isnan(crossing.mean_waiting) else crossing.mean_waiting
    return (number, *(ends if crossing.varied == "patience" else ends[::-1]), waiting)
