"""A whole picture: the header, and the cards with the panels in them."""

from __future__ import annotations

from typing import NamedTuple

from queue_env.rendering.canvas import Box, Canvas
from queue_env.rendering.jobs_panel import draw_jobs
from queue_env.rendering.numerals import clock, short
from queue_env.rendering.picture import Picture
from queue_env.rendering.servers_panel import draw_servers
from queue_env.rendering.tail_panel import draw_tail
from queue_env.rendering.theme import THEME

__all__ = ["Scene"]


class _Panels(NamedTuple):
    """Where the panels are: their insides, without the padding of their cards."""

    header: Box
    jobs: Box
    servers: Box
    tail: Box


class Scene:
    """A canvas, its panels, and what is the same in all frames.

    Args:
        size: width and height in pixels.
    """

    def __init__(self, size: tuple[int, int]) -> None:
        self.canvas = Canvas(size)
        self._panels = _place_panels(self.canvas)
        _draw_cards(self.canvas, self._panels)
        self._ground = self.canvas.surface.copy()

    def draw(self, picture: Picture) -> None:
        """Draw a picture on the canvas."""
        self.canvas.surface.blit(self._ground, (0, 0))
        try:
            _draw_header(self.canvas, self._panels.header, picture)
            draw_jobs(self.canvas, self._panels.jobs, picture)
            draw_servers(self.canvas, self._panels.servers, picture)
            draw_tail(self.canvas, self._panels.tail, picture)
        finally:
            self.canvas.drop_fonts()


def _place_panels(canvas: Canvas) -> _Panels:
    """Divide the canvas."""
    width, height = canvas.box.width, canvas.box.height
    margin, top = canvas.px(THEME.margin), canvas.px(THEME.header)
    left = round(THEME.left * width) - margin
    right = width - left - 3 * margin
    full = height - top - margin
    upper = round(THEME.servers * full)
    return _Panels(
        Box(margin, 0, width - 2 * margin, top),
        _inside(canvas, Box(margin, top, left, full)),
        _inside(canvas, Box(left + 2 * margin, top, right, upper)),
        _inside(canvas, Box(left + 2 * margin, top + upper + margin, right, full - upper - margin)),
    )


def _draw_cards(canvas: Canvas, panels: _Panels) -> None:
    """Draw what is the same in all frames: the ground and the cards."""
    canvas.fill(canvas.box, THEME.background)
    padding = canvas.px(THEME.padding)
    for box in panels[1:]:
        card = Box(box.x - padding, box.y - padding, box.width + 2 * padding, box.height + 2 * padding)
        canvas.card(card, THEME.card, THEME.border, radius=6)


def _draw_header(canvas: Canvas, box: Box, picture: Picture) -> None:
    """Write the title at the left, and the state of the episode at the right."""
    stats = (
        ("time", clock(picture.time)),
        ("present", f"{picture.number:,}"),
        ("served", f"{picture.served:,}"),
        ("mean response", short(picture.mean_response)),
        ("p99 response", short(picture.p99_response)),
        ("reward", short(picture.reward)),
    )
    right, gap = box.right, canvas.px(20)
    for name, value in reversed(stats):
        width = max(canvas.width(name, THEME.small), canvas.width(value, THEME.title - 3))
        canvas.text(right, box.y + canvas.px(21), name, THEME.small, THEME.muted, "right")
        canvas.text(right, box.y + canvas.px(42), value, THEME.title - 3, THEME.ink, "right")
        right -= width + gap
    title = canvas.shortened(picture.title, right - box.x, THEME.title)
    canvas.text(box.x, box.y + canvas.px(31), title, THEME.title)


def _inside(canvas: Canvas, card: Box) -> Box:
    padding = canvas.px(THEME.padding)
    return Box(card.x + padding, card.y + padding, card.width - 2 * padding, card.height - 2 * padding)
