"""The panel of the servers: which job gets how much of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from queue_env.rendering.canvas import Box, Canvas
from queue_env.rendering.numerals import job_name, short, tick
from queue_env.rendering.picture import Picture
from queue_env.rendering.theme import THEME, Colour, age_colours, ink_on

__all__ = ["MOST_BARS", "Share", "draw_servers", "shares"]

MOST_BARS = 16
"""Servers with a bar each; more of them share one bar."""

_ONE_COLUMN = 8  # bars below each other, then a second column begins
_ROUNDING = 1e-9


class Share(NamedTuple):
    """A stretch of the servers' capacity that a job gets; 2.25 is a quarter into the third server."""

    place: int
    start: float
    end: float


def shares(picture: Picture) -> list[Share]:
    """Divide the servers: full rates first, then the others, each in arrival order, without gaps.

    A job may end on one server and go on on the next one.

    Source: McNaughton, Scheduling with deadlines and loss functions, Management Science 6 (1959): as no rate
        is above 1, no job is ever on two servers at once.
    """
    places = picture.in_service
    order = places[np.argsort(-picture.rates[places], kind="stable")]
    ends = np.round(np.cumsum(picture.rates[order]) / _ROUNDING) * _ROUNDING
    starts = np.concatenate([[0.0], ends[:-1]])
    parts = zip(order.tolist(), starts.tolist(), ends.tolist(), strict=False)
    return [Share(place, start, min(end, picture.servers)) for place, start, end in parts if start < picture.servers]


def draw_servers(canvas: Canvas, box: Box, picture: Picture) -> None:
    """Draw a bar per server, or one for all of them, divided among the jobs in service."""
    px = canvas.px
    canvas.text(box.x, box.y + px(6), "Servers", THEME.text)
    used = f"{short(picture.in_use)} of {picture.servers:,} in use"
    canvas.text(box.right, box.y + px(6), used, THEME.text, THEME.muted, "right")
    body = Box(box.x, box.y + px(24), box.width, box.height - px(24))
    colours = age_colours(picture.ages, picture.tail_range).tolist()
    if picture.servers > MOST_BARS:
        height = px(46)
        bar = Box(body.x, body.y + (body.height - px(16) - height) // 2, body.width, height)
        _draw_bar(canvas, bar, picture, (0.0, float(picture.servers)), shares(picture), colours)
        _draw_capacity_axis(canvas, bar, picture.servers)
        return
    divided = shares(picture)
    for server, bar in enumerate(_bars(canvas, body, picture.servers)):
        canvas.text(bar.x - px(6), bar.middle, str(server + 1), THEME.small, THEME.muted, "right")
        _draw_bar(canvas, bar, picture, (float(server), server + 1.0), divided, colours)


def _bars(canvas: Canvas, body: Box, servers: int) -> Iterator[Box]:
    """Where the servers' bars are: below each other, in two columns where they are many."""
    columns = 1 if servers <= _ONE_COLUMN else 2
    lines = -(-servers // columns)
    label, gap = canvas.px(20), canvas.px(14)
    width = (body.width - (columns - 1) * gap) // columns
    pitch = min(body.height // lines, canvas.px(52))
    top = body.y + (body.height - pitch * lines) // 2
    for server in range(servers):
        column, line = divmod(server, lines)
        x = body.x + column * (width + gap) + label
        yield Box(x, top + line * pitch, width - label, pitch - max(2, pitch // 6))


def _draw_bar(
    canvas: Canvas,
    bar: Box,
    picture: Picture,
    span: tuple[float, float],
    divided: list[Share],
    colours: list[list[int]],
) -> None:
    """Draw the part of the shares that lies in a span of capacity; what is left of the bar is idle."""
    low, high = span
    canvas.fill(bar, THEME.track)
    last = bar.x
    for share in divided:
        if share.end <= low or share.start >= high:
            continue
        left, right = (
            bar.x + round((min(max(edge, low), high) - low) / (high - low) * bar.width) for edge in share[1:]
        )
        red, green, blue = colours[share.place]
        _draw_share(canvas, bar._replace(x=left, width=right - left), picture, share.place, (red, green, blue))
        last = right
    room = bar.right - last
    if room >= canvas.width("idle", THEME.small) + canvas.px(8):
        canvas.text(last + room / 2, bar.middle, "idle", THEME.small, THEME.muted, "centre")


def _draw_share(canvas: Canvas, part: Box, picture: Picture, place: int, colour: Colour) -> None:
    if part.width <= 0:
        return
    canvas.fill(part, colour)
    if part.width >= canvas.px(4):
        canvas.line((part.right - 1, part.y), (part.right - 1, part.bottom - 1), THEME.card)
    mark = place == picture.anchor
    if mark and part.width >= canvas.px(4):
        canvas.outline(part._replace(width=part.width - 1), THEME.anchor, width=canvas.px(2))
    name = job_name(picture.numbers[place])
    room = canvas.px(8) + (canvas.px(14) if mark else 0)
    if part.height >= canvas.px(12) and canvas.width(name, THEME.small) + room <= part.width:
        x = part.x + part.width / 2 + (canvas.px(6) if mark else 0)
        width = canvas.text(x, part.middle, name, THEME.small, ink_on(colour), "centre")
        if mark:
            canvas.diamond(x - width / 2 - canvas.px(7), part.middle, 3, ink_on(colour))


def _draw_capacity_axis(canvas: Canvas, bar: Box, servers: int) -> None:
    for quarter in range(5):
        x = bar.x + round(quarter / 4 * (bar.width - 1))
        canvas.line((x, bar.bottom), (x, bar.bottom + canvas.px(4)), THEME.muted)
        align = {0: "left", 4: "right"}.get(quarter, "centre")
        label = tick(quarter * servers / 4)
        canvas.text(x, bar.bottom + canvas.px(13), label, THEME.small, THEME.muted, align)  # type: ignore[arg-type]
