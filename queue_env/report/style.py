"""What all figures have in common: colours and dashes, grids, ticks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = [
    "RATIO_LABEL",
    "THICK",
    "THIN",
    "draw_bound",
    "line_style",
    "new_figure",
    "require_matplotlib",
    "set_plain_ticks",
    "tidy",
]

THICK, THIN = 1.8, 0.9
RATIO_LABEL = "P[T > t] / P[S > c t]"
# Okabe and Ito (2008): eight colours that stay apart for colour-blind readers; then again with other dashes.
_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#B2A800")
_DASHES = ("-", "--", ":")


def require_matplotlib() -> None:
    """Raise the ImportError that says what to install, if there is no matplotlib."""
    try:
        import matplotlib  # noqa: F401
    except ImportError as error:
        raise ImportError("the figure needs matplotlib: install queue-env[plot]") from error


def new_figure(width: float, height: float) -> Figure:
    """An empty figure of this size in inches, which no window belongs to.

    Raises:
        ImportError: matplotlib is not installed.
    """
    require_matplotlib()
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), dpi=150, layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def line_style(index: int) -> dict[str, Any]:
    """Colour and dashes of the line of an index."""
    return {
        "color": _COLOURS[index % len(_COLOURS)],
        "linestyle": _DASHES[index // len(_COLOURS) % len(_DASHES)],
    }


def draw_bound(axes: Any) -> Any:
    """Draw the dotted line at one, to which normalised tails are compared, and return it for the legend."""
    return axes.axhline(1.0, color="#555555", linewidth=1, linestyle=":", label="P[S > c t]")


def tidy(axes: Any) -> None:
    """A faint grid behind the lines, and no spines at the top and on the right."""
    axes.grid(which="major", color="#d0d0d0", linewidth=0.7)
    axes.grid(which="minor", color="#ececec", linewidth=0.4)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)


def set_plain_ticks(axis: Any) -> None:
    """Ticks at 0.5, 1, 2, 3 and so on of a logarithmic axis."""
    from matplotlib.ticker import LogLocator, NullFormatter

    axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 3.0, 5.0)))
    axis.set_major_formatter("{x:g}")
    axis.set_minor_formatter(NullFormatter())
