"""The panel of the tail of response time, against its lower bound."""

from __future__ import annotations

import math

import numpy as np

from queue_env.rendering.canvas import Box, Canvas
from queue_env.rendering.picture import FloatArray, Picture
from queue_env.rendering.scales import DecadeScale
from queue_env.rendering.theme import THEME

__all__ = ["draw_tail", "tail_by_column"]

_FEWEST_DECADES = 3  # of time


def draw_tail(canvas: Canvas, box: Box, picture: Picture) -> None:
    """Draw P[T > t] of the response times so far and its lower bound, both axes logarithmic."""
    px = canvas.px
    plot = Box(box.x + px(34), box.y + px(44), box.width - px(46), box.height - px(80))
    times, tails = _scales(plot, picture)
    _draw_legend(canvas, box, picture)
    curve = _curve(plot, picture, times, tails)
    canvas.area(plot, curve, THEME.curve_fill)
    _draw_axes(canvas, box, plot, times, tails)
    canvas.curve(plot, _bound(plot, picture, times, tails), THEME.bound, dash=9)
    canvas.curve(plot, curve, THEME.curve)


def tail_by_column(response_times: FloatArray, scale: DecadeScale, columns: int) -> FloatArray:
    """P[T > t] at the edges of so many columns of pixels of a time axis, shape (columns + 1,).

    Counting by columns needs no sorting: it takes less than a millisecond for 10⁵ response times.
    """
    with np.errstate(divide="ignore"):
        passed = (np.log10(response_times) - scale.low) / (scale.high - scale.low)
    # The first edge that a value does not exceed; those above all edges come last.
    first = np.ceil(np.clip(passed * columns, 0, columns + 1)).astype(np.int64)
    not_above = np.cumsum(np.bincount(first, minlength=columns + 2))[:-1]
    return np.asarray((len(response_times) - not_above) / len(response_times))


def _scales(plot: Box, picture: Picture) -> tuple[DecadeScale, DecadeScale]:
    """Axes in whole decades, that start below t0 and hold all response times so far."""
    first = picture.tail_range[0]
    if picture.served and picture.mean_response > 0:
        first = min(first, picture.mean_response)
    low = math.floor(math.log10(first)) - 1
    longest = float(picture.response_times.max(initial=0.0))
    high = math.ceil(math.log10(longest)) if longest > 0 else low
    high = max(high, low + _FEWEST_DECADES)
    rarest = -math.ceil(math.log10(max(picture.served, 100)))
    times = DecadeScale(low, high, plot.x, plot.right)
    return times, DecadeScale(rarest, 0, plot.bottom - 1, plot.y + 4)


def _curve(plot: Box, picture: Picture, times: DecadeScale, tails: DecadeScale) -> FloatArray:
    """Heights of the tail so far at the columns' edges, down to the axis at the longest response, then NaN."""
    heights = np.full(plot.width + 1, np.nan)
    if picture.served:
        tail = tail_by_column(picture.response_times, times, plot.width)
        seen = np.flatnonzero(tail)
        heights[seen] = tails.place(tail[seen])
        heights[len(seen) : len(seen) + 1] = plot.bottom
    return heights


def _bound(plot: Box, picture: Picture, times: DecadeScale, tails: DecadeScale) -> FloatArray:
    """Heights of the lower bound at the columns' edges, NaN where it is not known."""
    known = (picture.bound_times > 0) & (picture.bound_tail > 0)
    if not known.any():
        return np.full(plot.width + 1, np.nan)
    places, heights = times.place(picture.bound_times[known]), tails.place(picture.bound_tail[known])
    edges = plot.x + np.arange(plot.width + 1)
    return np.interp(edges, places, heights, left=np.nan, right=np.nan)


def _draw_axes(canvas: Canvas, box: Box, plot: Box, times: DecadeScale, tails: DecadeScale) -> None:
    px = canvas.px
    for power in times.powers(px(34)):
        x = round(float(times.place(10.0**power)))
        canvas.line((x, plot.y), (x, plot.bottom), THEME.grid)
        canvas.line((x, plot.bottom), (x, plot.bottom + px(4)), THEME.muted)
        canvas.power(x, plot.bottom + px(13), power, "centre")
    for power in tails.powers(px(20)):
        y = round(float(tails.place(10.0**power)))
        canvas.line((plot.x, y), (plot.right, y), THEME.grid)
        canvas.line((plot.x - px(4), y), (plot.x, y), THEME.muted)
        canvas.power(plot.x - px(7), y, power, "right")
    canvas.line((plot.x, plot.y), (plot.x, plot.bottom), THEME.muted)
    canvas.line((plot.x, plot.bottom), (plot.right, plot.bottom), THEME.muted)
    label = "response time t [time units]"
    canvas.text(plot.x + plot.width / 2, box.bottom - px(5), label, THEME.small, THEME.muted, "centre")


def _draw_legend(canvas: Canvas, box: Box, picture: Picture) -> None:
    """The panel's title, and below it what the lines are."""
    px = canvas.px
    canvas.text(box.x, box.y + px(6), "Tail of response time", THEME.text)
    y, x = box.y + px(27), box.x
    entries = [("P[T > t] so far" if picture.served else "no job served yet", THEME.curve, False)]
    if len(picture.bound_times):
        entries.append(("asymptotic bound P[S > c t]", THEME.bound, True))
    for name, colour, dashed in entries:
        for start, end in ((0, 8), (13, 21)) if dashed else ((0, 22),):
            canvas.fill(Box(x + px(start), y - px(1), px(end - start), px(2)), colour)
        x += px(30)
        x += canvas.text(x, y, name, THEME.small, THEME.muted) + px(16)
