"""The figure of the tails of response time."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from queue_env.report.results import has_normalised_tail, headline, is_seen, time_unit

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from queue_env.result import Comparison, Result

__all__ = ["require_matplotlib", "tail_figure"]

FloatArray: TypeAlias = NDArray[np.float64]

PLAIN_TICKS_BELOW = 100
"""Ticks are 0.5, 1, 2, 3 up to this ratio of the highest to the lowest point, powers of ten from there."""

_POINTS_PER_DECADE = 24
# Okabe and Ito (2008): eight colours that stay apart for colour-blind readers; then again with other dashes.
_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#B2A800")
_DASHES = ("-", "--", ":")


def require_matplotlib() -> None:
    """Raise the ImportError that says what to install, if there is no matplotlib."""
    try:
        import matplotlib  # noqa: F401
    except ImportError as error:
        raise ImportError("the figure needs matplotlib: install queue-env[plot]") from error


def tail_figure(results: Comparison) -> Figure:
    """Draw the tails of response time, with 95 % bands, where at least ten jobs lie beyond t.

    A scenario without patience has its normalised tail P[T > t] / P[S > c t], any other result P[T > t].
    Times are in mean service times, for a trace in seconds.

    Raises:
        ImportError: matplotlib is not installed.
    """
    require_matplotlib()
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    first = next(iter(results.values()))
    normalised, unit = has_normalised_tail(first), time_unit(first)
    figure = Figure(figsize=(9, 5), dpi=150, layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    axes.set(xscale="log", yscale="log", xlabel=f"response time t [{_unit_name(first)}]")
    axes.set_ylabel("P[T > t] / P[S > c t]" if normalised else "P[T > t]")
    for index, (policy, result) in enumerate(results.items()):
        _draw_tail(axes, policy, _curve(result, _grid(results, unit), normalised), unit, index)
    _finish(axes, results, normalised)
    return figure


def _grid(results: Comparison, unit: float) -> FloatArray:
    """Times at equal ratios, from a tenth of the time unit (or what is seen) to the longest response."""
    longest = max(result.max_response for result in results.values())
    shortest = min(float(result.quantile(0.01)) for result in results.values())
    low, high = math.log10(max(0.1 * unit, shortest / 2)), math.log10(longest)
    return np.logspace(low, high, max(2, math.ceil((high - low) * _POINTS_PER_DECADE)))


@dataclass(frozen=True)
class _Curve:
    """A tail and its band at the times where it was seen, all of shape (points,)."""

    t: FloatArray
    value: FloatArray
    low: FloatArray
    high: FloatArray


def _curve(result: Result, grid: FloatArray, normalised: bool) -> _Curve:
    t = grid[is_seen(result, grid)]
    value = result.normalised_tail(t) if normalised else result.tail(t)
    low, high = (result.normalised_tail_interval if normalised else result.tail_interval)(t)
    return _Curve(t, *(np.asarray(array, dtype=np.float64) for array in (value, low, high)))


def _draw_tail(axes: Any, policy: str, curve: _Curve, unit: float, index: int) -> None:
    colour = _COLOURS[index % len(_COLOURS)]
    dashes = _DASHES[index // len(_COLOURS) % len(_DASHES)]
    times = curve.t / unit
    axes.plot(times, curve.value, color=colour, linestyle=dashes, linewidth=1.6, label=policy)
    # A band that reaches 0 goes to the lower edge of the figure; the limits of the axes come from the lines.
    low = np.maximum(curve.low, np.finfo(np.float64).tiny)
    axes.fill_between(times, low, curve.high, color=colour, alpha=0.18, linewidth=0)


def _finish(axes: Any, results: Comparison, normalised: bool) -> None:
    """Limits from the lines, ticks, title, and a legend in the order of the lines' ends."""
    lines = [line for line in axes.lines if line.get_xdata().size]
    heights = np.concatenate([line.get_ydata() for line in lines])
    axes.set_ylim(heights.min() / 1.15, heights.max() * 1.15)
    if heights.max() / heights.min() < PLAIN_TICKS_BELOW:
        _set_plain_ticks(axes.yaxis)
    axes.grid(which="major", color="#d0d0d0", linewidth=0.7)
    axes.grid(which="minor", color="#ececec", linewidth=0.4)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    axes.set_title(headline(results), loc="left", fontsize=10)
    shared = min(line.get_xdata()[-1] for line in lines)
    lines.sort(key=lambda line: -float(np.interp(shared, line.get_xdata(), line.get_ydata())))
    if normalised:
        lines.append(axes.axhline(1.0, color="#555555", linewidth=1, linestyle=":", label="P[S > c t]"))
    axes.legend(handles=lines, loc="center left", bbox_to_anchor=(1.01, 0.5), frameon=False)


def _set_plain_ticks(axis: Any) -> None:
    from matplotlib.ticker import LogLocator, NullFormatter

    axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 3.0, 5.0)))
    axis.set_major_formatter("{x:g}")
    axis.set_minor_formatter(NullFormatter())


def _unit_name(result: Result) -> str:
    return "seconds" if result.scenario is None else "mean service times"
