"""The figure of the tails of response time."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from queue_env.report.results import FEWEST_EVENTS, has_normalised_tail, is_seen, time_unit
from queue_env.report.style import RATIO_LABEL, THICK, THIN, draw_bound, line_style, new_figure, set_plain_ticks, tidy

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from queue_env.result import Result

__all__ = ["tail_figure"]

FloatArray: TypeAlias = NDArray[np.float64]

PLAIN_TICKS_BELOW = 100
"""Ticks are 0.5, 1, 2, 3 up to this ratio of the highest to the lowest point, powers of ten from there."""

_POINTS_PER_DECADE = 24


def tail_figure(results: Mapping[str, Result], title: str) -> Figure:
    """Draw the tails of response time with 95 % bands.

    A scenario without patience has its normalised tail P[T > t] / P[S > c t], any other result P[T > t].
    Times are in mean service times, for a trace in seconds. A line ends where fewer than ten jobs lie beyond
    t; it is thin and without a band where its interval reaches 0.

    Raises:
        ImportError: matplotlib is not installed.
    """
    first = next(iter(results.values()))
    normalised, unit = has_normalised_tail(first), time_unit(first)
    figure = new_figure(9, 5)
    axes = figure.add_subplot()
    axes.set(xscale="log", yscale="log", xlabel=f"response time t [{_unit_name(first)}]")
    axes.set_ylabel(RATIO_LABEL if normalised else "P[T > t]")
    axes.set_title(title, loc="left", fontsize=10)
    shown = {policy: result for policy, result in results.items() if result.served >= FEWEST_EVENTS}
    for index, (policy, result) in enumerate(shown.items()):
        curve = _curve(result, _grid(shown.values(), unit), normalised)
        _draw_tail(axes, policy, curve, unit, index)
    if shown:
        _finish(axes, normalised)
    return figure


@dataclass(frozen=True)
class _Curve:
    """A tail and its band where it was seen, all of shape (points,); `sure`: the band is above 0."""

    t: FloatArray
    value: FloatArray
    low: FloatArray
    high: FloatArray
    sure: NDArray[np.bool_]


def _grid(results: Iterable[Result], unit: float) -> FloatArray:
    """Times at equal ratios, from a tenth of the time unit (or what is seen) to the longest response."""
    shown = list(results)
    shortest = min(float(result.quantile(0.01)) for result in shown)
    low = math.log10(max(0.1 * unit, shortest / 2))
    high = math.log10(max(result.max_response for result in shown))
    return np.logspace(low, high, max(2, math.ceil((high - low) * _POINTS_PER_DECADE)))


def _curve(result: Result, grid: FloatArray, normalised: bool) -> _Curve:
    t = grid[is_seen(result, grid)]
    value = result.normalised_tail(t) if normalised else result.tail(t)
    low, high = (result.normalised_tail_interval if normalised else result.tail_interval)(t)
    sure = np.logical_and.accumulate(low > 0)
    return _Curve(t, value, low, high, sure)


def _draw_tail(axes: Any, policy: str, curve: _Curve, unit: float, index: int) -> None:
    style = line_style(index)
    times, sure = curve.t / unit, curve.sure
    rest = slice(max(int(sure.sum()) - 1, 0), None)  # from the last sure point on
    axes.plot(times[rest], curve.value[rest], linewidth=THIN, **style)
    axes.plot(times[sure], curve.value[sure], linewidth=THICK, label=policy, **style)
    axes.fill_between(times[sure], curve.low[sure], curve.high[sure], color=style["color"], alpha=0.18, linewidth=0)


def _finish(axes: Any, normalised: bool) -> None:
    """Limits, ticks, and a legend in the order of the lines' ends."""
    _set_limits(axes)
    tidy(axes)
    named = [line for line in axes.lines if not line.get_label().startswith("_")]
    thick = [line for line in named if line.get_xdata().size]
    shared = min([line.get_xdata()[-1] for line in thick], default=1.0)
    thick.sort(key=lambda line: -float(np.interp(shared, line.get_xdata(), line.get_ydata())))
    thick += [line for line in named if not line.get_xdata().size]
    if normalised:
        thick.append(draw_bound(axes))
    axes.legend(handles=thick, loc="center left", bbox_to_anchor=(1.01, 0.5), frameon=False)


def _set_limits(axes: Any) -> None:
    """Limits that hold all that is sure, and of the rest what comes before it leaves at the top."""
    lines = [line.get_xydata() for line in axes.lines if line.get_xdata().size]
    sure = [line.get_ydata() for line in axes.lines if line.get_ydata().size and line.get_linewidth() == THICK]
    top = 1.15 * max(heights.max() for heights in sure or [line[:, 1] for line in lines])
    inside = np.concatenate([line[np.logical_and.accumulate(line[:, 1] <= top)] for line in lines])
    (left, bottom), right = inside.min(axis=0), inside[:, 0].max()
    axes.set(xlim=(left / 1.3, right * 1.3), ylim=(bottom / 1.15, top))
    if top / bottom < PLAIN_TICKS_BELOW:
        set_plain_ticks(axes.yaxis)


def _unit_name(result: Result) -> str:
    return "seconds" if result.scenario is None else "mean service times"
