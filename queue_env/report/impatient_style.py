"""What the figures of many servers with impatient jobs have in common: marks by number of servers, legends, CSV."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from queue_env.report.style import set_plain_ticks

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["GREY", "draw_legend", "heading", "mark", "marks", "named", "plain_csv", "set_ticks"]

GREY = "#555555"
_MARKERS = ("o", "s", "D", "^", "v", "P")
_SIZES = (7.5, 5.5)  # of the first and of the last mark, so that those that meet are all seen


def heading(figure: Figure, title: str) -> None:
    """Put a title over all panels."""
    figure.suptitle(title, x=0.01, ha="left", fontsize=11)


def mark(size: int, sizes: int, color: str) -> dict[str, Any]:
    """How a point is drawn that belongs to one of several numbers of servers: the more, the smaller and darker."""
    from matplotlib.colors import to_rgb

    depth = size / max(sizes - 1, 1) if sizes > 1 else 1.0
    face = tuple(1 - depth * (1 - part) for part in to_rgb(color))
    return {
        "marker": _MARKERS[size % len(_MARKERS)],
        "markersize": _SIZES[0] + depth * (_SIZES[1] - _SIZES[0]),
        "markeredgecolor": color,
        "markeredgewidth": 1.0,
        "markerfacecolor": face,
        "linestyle": "none",
    }


def marks(servers: Sequence[int]) -> list[Any]:
    """Entries of a legend that say which mark belongs to which number of servers."""
    from matplotlib.lines import Line2D

    styles = [mark(size, len(servers), GREY) for size in range(len(servers))]
    return [Line2D([], [], label=named(number), **style) for number, style in zip(servers, styles, strict=True)]


def named(servers: int) -> str:
    """A number of servers in words: 1 server, 1,000 servers."""
    return f"{servers:,} server{'s' * (servers != 1)}"


def draw_legend(figure: Figure, handles: Sequence[Any]) -> None:
    """Put one legend below all panels."""
    figure.legend(handles=list(handles), loc="outside lower center", ncols=len(handles), frameon=False, fontsize=9)


def set_ticks(axis: Any, places: Sequence[float]) -> None:
    """Ticks at these places of a logarithmic axis, and nowhere else."""
    from matplotlib.ticker import FixedLocator, NullLocator

    set_plain_ticks(axis)
    axis.set_major_locator(FixedLocator(sorted(set(places))))
    axis.set_minor_locator(NullLocator())


def plain_csv(columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """Rows under the names of their columns, as CSV."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(rows)
    return text.getvalue()
