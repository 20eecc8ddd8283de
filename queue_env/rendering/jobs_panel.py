"""The panel of the jobs present: a row each, those in service first."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from queue_env.rendering.canvas import Box, Canvas
from queue_env.rendering.numerals import job_name, short, tick
from queue_env.rendering.picture import IntArray, Picture
from queue_env.rendering.scales import SizeScale
from queue_env.rendering.theme import THEME, Colour, age_colours

__all__ = ["draw_jobs"]

_WAITING_ROWS = 1 / 3
"""Share of the rows that waiting jobs keep where more are in service than fit."""

_HEAD, _NAMES = 48, 26  # height of what is above the rows, and where in it the columns' names are
_FOOT = 42  # height of the legend below the rows


class _Columns(NamedTuple):
    """Left edges of the gauge and the bars, and right ends of all columns, in pixels."""

    gauge: int
    gauge_end: int
    rate_end: int
    mark: int
    number_end: int
    bar: int
    bar_end: int
    remaining_end: int
    size_end: int
    age_end: int


def draw_jobs(canvas: Canvas, box: Box, picture: Picture) -> None:
    """Draw the jobs as bars: as long as their size, filled as far as their remaining size, coloured by age."""
    columns = _place_columns(canvas, box)
    row, head = canvas.px(THEME.row), box.y + canvas.px(_HEAD)
    rows = (box.bottom - canvas.px(_FOOT) - head) // row
    largest = float(picture.sizes.max(initial=0.0))
    scale = SizeScale.holding(largest, picture.tail_range[0], columns.bar_end - columns.bar)
    _draw_heads(canvas, box, columns, picture)
    _draw_size_axis(canvas, Box(columns.bar, head, columns.bar_end - columns.bar, rows * row), scale)
    _draw_legend(canvas, box, picture.tail_range)
    if not picture.number:
        canvas.text(columns.bar + canvas.px(8), head + 1.5 * row, "no jobs present", THEME.text, THEME.muted)
    colours = age_colours(picture.ages, picture.tail_range).tolist()
    for line, (place, rest) in enumerate(_lines(picture, rows)):
        here = Box(box.x, head + line * row, box.width, row)
        if rest:
            ground = canvas.width(rest, THEME.small) + canvas.px(12)
            canvas.fill(Box(columns.bar, here.y + 1, ground, row - 1), THEME.card)
            canvas.text(columns.bar + canvas.px(4), here.middle, rest, THEME.small, THEME.muted)
        else:
            _draw_job(canvas, here, columns, scale, picture, place, tuple(colours[place]))
    _draw_divider(canvas, box, head, row, picture, rows)


def _lines(picture: Picture, rows: int) -> Iterator[tuple[int, str]]:
    """For each row the place of a job, or -1 and how many are left out."""
    service, waiting = picture.in_service, picture.waiting
    yield from _group(picture, service, _service_rows(picture, rows), "in service")
    yield from _group(picture, waiting, rows - _service_rows(picture, rows), "waiting")


def _service_rows(picture: Picture, rows: int) -> int:
    """Rows for the jobs in service: all they need, as long as the waiting ones have their share."""
    needed, others = len(picture.in_service), len(picture.waiting)
    kept = min(others, math.ceil(rows * _WAITING_ROWS))
    return min(needed, rows - kept)


def _group(picture: Picture, places: IntArray, room: int, name: str) -> Iterator[tuple[int, str]]:
    if len(places) <= room:
        yield from ((place, "") for place in places.tolist())
        return
    yield from ((place, "") for place in picture.first(places, room - 1))
    yield -1, f"+ {len(places) - room + 1:,} more {name}"


def _place_columns(canvas: Canvas, box: Box) -> _Columns:
    px = canvas.px
    rate_end, age_end = box.x + px(60), box.right
    number_end = rate_end + px(70)
    size_end = age_end - px(56)
    remaining_end = size_end - px(58)
    return _Columns(
        box.x + px(4),
        box.x + px(28),
        rate_end,
        rate_end + px(13),
        number_end,
        number_end + px(14),
        remaining_end - px(66),
        remaining_end,
        size_end,
        age_end - px(4),
    )


def _draw_heads(canvas: Canvas, box: Box, columns: _Columns, picture: Picture) -> None:
    y = box.y + canvas.px(6)
    width = canvas.text(box.x, y, "Jobs")
    canvas.text(box.x + width + canvas.px(8), y, "[time units]", THEME.small, THEME.muted)
    count = f"{len(picture.in_service):,} in service, {len(picture.waiting):,} waiting"
    canvas.text(box.right, y, count, colour=THEME.muted, align="right")
    heads = (
        (columns.rate_end, "rate"),
        (columns.number_end, "job"),
        (columns.remaining_end, "remaining"),
        (columns.size_end, "size"),
        (columns.age_end, "age"),
    )
    for x, name in heads:
        canvas.text(x, y + canvas.px(_NAMES), name, THEME.small, THEME.muted, "right")


def _draw_size_axis(canvas: Canvas, box: Box, scale: SizeScale) -> None:
    """Names of the sizes above the rows, and lines through them."""
    for value in scale.ticks(canvas.px(44)):
        x = box.x + round(float(scale.place(value)))
        canvas.text(x, box.y - canvas.px(_HEAD - _NAMES - 6), tick(value), THEME.small, THEME.muted, "centre")
        canvas.line((x, box.y - canvas.px(4)), (x, box.bottom), THEME.grid)


def _draw_divider(canvas: Canvas, box: Box, head: int, row: int, picture: Picture, rows: int) -> None:
    """A line between the jobs in service and those that wait."""
    above = _service_rows(picture, rows)
    if above and len(picture.waiting):
        canvas.line((box.x, head + above * row), (box.right - 1, head + above * row), THEME.muted)


def _draw_job(
    canvas: Canvas, row: Box, columns: _Columns, scale: SizeScale, picture: Picture, place: int, colour: Colour
) -> None:
    px = canvas.px
    rate, size, remaining = (float(part[place]) for part in (picture.rates, picture.sizes, picture.remaining))
    if place == picture.anchor:
        canvas.fill(Box(row.x, row.y + 1, row.width, row.height - 1), THEME.anchor_tint, radius=3)
        canvas.diamond(columns.mark, row.middle, 4, THEME.anchor)
    if rate > 0:
        _draw_gauge(canvas, row, columns, rate)
    canvas.text(columns.number_end, row.middle, job_name(picture.numbers[place]), align="right")
    height = row.height - px(6)
    whole, left = (max(2, round(float(scale.place(part)))) for part in (size, min(remaining, size)))
    canvas.fill(Box(columns.bar, row.y + px(3), whole, height), THEME.track, radius=2)
    canvas.fill(Box(columns.bar, row.y + px(3), left, height), colour, radius=2)
    canvas.text(columns.remaining_end, row.middle, short(remaining), align="right")
    canvas.text(columns.size_end, row.middle, short(size), align="right")
    canvas.text(columns.age_end, row.middle, short(float(picture.ages[place])), align="right")


def _draw_gauge(canvas: Canvas, row: Box, columns: _Columns, rate: float) -> None:
    width, height = columns.gauge_end - columns.gauge, canvas.px(7)
    gauge = Box(columns.gauge, row.middle - height // 2, width, height)
    canvas.fill(gauge, THEME.track)
    canvas.fill(gauge._replace(width=max(1, round(width * min(rate, 1.0)))), THEME.gauge)
    canvas.text(columns.rate_end, row.middle, f"{rate:.2f}", align="right")


def _draw_legend(canvas: Canvas, box: Box, tail_range: tuple[float, float]) -> None:
    """What a bar and the anchor's mark mean, and the colours of ages from t0 to t1."""
    px = canvas.px
    y, x = box.bottom - px(24), box.x + px(4)
    canvas.fill(Box(x, y - px(5), px(24), px(11)), THEME.track, radius=2)
    canvas.fill(Box(x, y - px(5), px(14), px(11)), THEME.muted, radius=2)
    x += px(30)
    x += px(16) + canvas.text(x, y, "remaining of size", THEME.small, THEME.muted)
    canvas.diamond(x, y, 4, THEME.anchor)
    x += px(9)
    x += px(18) + canvas.text(x, y, "anchor", THEME.small, THEME.muted)
    x += px(8) + canvas.text(x, y, "age", THEME.small, THEME.muted)
    bar = Box(x, y - px(5), box.right - px(20) - x, px(10))
    low, high = tail_range
    across = np.linspace(0.0, 1.0, bar.width)
    for shift, (red, green, blue) in enumerate(age_colours(low * (high / low) ** across, tail_range).tolist()):
        canvas.fill(Box(bar.x + shift, bar.y, 1, bar.height), (red, green, blue))
    _draw_age_ticks(canvas, bar, low, high)


def _draw_age_ticks(canvas: Canvas, bar: Box, low: float, high: float) -> None:
    """Name t0 and t1, and between them the powers of ten that find room."""
    apart, end = canvas.px(44), bar.right - 1
    ticks: list[tuple[float, float]] = [(bar.x, low)]
    for power in range(math.ceil(math.log10(low)), math.ceil(math.log10(high))):
        x = bar.x + math.log(10.0**power / low) / math.log(high / low) * (bar.width - 1)
        if ticks[-1][0] + apart <= x <= end - apart:
            ticks.append((round(x), 10.0**power))
    for x, value in (*ticks, (end, high)):
        canvas.line((x, bar.bottom), (x, bar.bottom + canvas.px(3)), THEME.muted)
        name = tick(float(f"{value:.3g}"))
        canvas.text(x, bar.bottom + canvas.px(10), name, THEME.small, THEME.muted, "centre")
