"""What the panels of a picture are drawn with: text and shapes on an array of pixels.

Importing this module imports pygame, so it is imported where a frame is drawn, and not before.
"""

from __future__ import annotations

from typing import Literal, NamedTuple, TypeAlias

import numpy as np
import pygame
import pygame.font
import pygame.gfxdraw
from numpy.typing import NDArray

from queue_env.rendering.picture import FloatArray
from queue_env.rendering.theme import THEME, Colour

__all__ = ["Align", "Box", "Canvas"]

Align: TypeAlias = Literal["left", "centre", "right"]

_MOST_TEXTS = 4096  # kept, some hundred bytes each
_FONT_SIZE = 1.5  # what pygame's own font calls its size, per height of a line
_FINE = 4  # letters are drawn larger and then made small, for without that they stand too close to be read


class Box(NamedTuple):
    """A rectangle of pixels; x and y are those of its upper left corner."""

    x: int
    y: int
    width: int
    height: int

    @property
    def right(self) -> int:
        """The first column right of the box."""
        return self.x + self.width

    @property
    def bottom(self) -> int:
        """The first row below the box."""
        return self.y + self.height

    @property
    def middle(self) -> int:
        """The row in the middle."""
        return self.y + self.height // 2


class Canvas:
    """An array of pixels, and brushes whose lengths grow with it.

    All text is in the font that comes with pygame, so that frames are the same on all machines.

    Args:
        size: width and height in pixels.
    """

    def __init__(self, size: tuple[int, int]) -> None:
        width, height = size
        self.box = Box(0, 0, width, height)
        self.pixels: NDArray[np.uint8] = np.zeros((height, width, 3), dtype=np.uint8)
        # The surface draws into the array: reading a frame is a copy of the array.
        self.surface = pygame.image.frombuffer(self.pixels, size, "RGB")  # type: ignore[arg-type]
        self.unit = min(width / THEME.base[0], height / THEME.base[1])
        self._fonts: dict[int, pygame.font.Font] = {}
        self._texts: dict[tuple[str, int, Colour], pygame.Surface] = {}

    def px(self, length: float) -> int:
        """A length of the theme in pixels of this canvas, 1 at least."""
        return max(1, round(length * self.unit))

    # ---- text -----------------------------------------------------------------------------------------------

    def text(
        self,
        x: float,
        middle: float,
        text: str,
        size: int = THEME.text,
        colour: Colour = THEME.ink,
        align: Align = "left",
    ) -> int:
        """Write a line at x, centred on a row; returns its width in pixels."""
        image = self._image(text, size, colour)
        width, height = image.get_size()
        left = x - {"left": 0.0, "centre": width / 2, "right": width}[align]
        self.surface.blit(image, (round(left), round(middle - height / 2)))
        return width

    def width(self, text: str, size: int = THEME.text) -> int:
        """The width of a line in pixels."""
        return -(-self._font(size).size(text)[0] // _FINE)

    def shortened(self, text: str, room: int, size: int) -> str:
        """The text, or as much of its beginning as fits into so many pixels, with an ellipsis."""
        if self.width(text, size) <= room:
            return text
        kept = text
        while kept and self.width(kept + "…", size) > room:
            kept = kept[:-1]
        return kept.rstrip() + "…"

    def power(self, x: float, middle: float, power: int, align: Align) -> None:
        """Write a power of ten: 0.01 to 100 plainly, the others with an exponent."""
        size, colour = THEME.small, THEME.muted
        if -2 <= power <= 2:
            self.text(x, middle, f"{10.0**power:g}", size, colour, align)
            return
        exponent = str(power).replace("-", "−")
        width = self.width("10", size) + self.width(exponent, size - 3)
        left = x - {"left": 0.0, "centre": width / 2, "right": width}[align]
        left += self.text(left, middle, "10", size, colour)
        self.text(left, middle - self.px(4), exponent, size - 3, colour)

    # ---- shapes ---------------------------------------------------------------------------------------------

    def fill(self, box: Box, colour: Colour, radius: float = 0) -> None:
        """Fill a rectangle, with round corners of a radius in the theme's pixels."""
        pygame.draw.rect(self.surface, colour, box, border_radius=round(radius * self.unit))

    def outline(self, box: Box, colour: Colour, width: int) -> None:
        """Draw the border of a rectangle inside of it."""
        pygame.draw.rect(self.surface, colour, box, width)

    def card(self, box: Box, colour: Colour, border: Colour, radius: float) -> None:
        """Draw a rectangle with a border of one pixel and smooth round corners."""
        bend = radius * self.unit
        across, down = (np.abs(np.arange(length) + 0.5 - length / 2) for length in (box.width, box.height))
        outside = np.hypot(
            np.maximum(across - (box.width / 2 - bend), 0.0),
            np.maximum(down[:, np.newaxis] - (box.height / 2 - bend), 0.0),
        )
        self._blend(box, np.clip(bend + 0.5 - outside, 0.0, 1.0), border)
        self._blend(box, np.clip(bend - 0.5 - outside, 0.0, 1.0), colour)

    def line(self, start: tuple[float, float], end: tuple[float, float], colour: Colour) -> None:
        """Draw a horizontal or vertical line of one pixel."""
        pygame.draw.line(self.surface, colour, start, end)

    def curve(self, box: Box, heights: FloatArray, colour: Colour, dash: float = 0, thickness: float = 2) -> None:
        """Draw a smooth curve over the columns of a box; what leaves the box is cut off.

        pygame's own smooth lines crash where they leave a surface, and are one pixel thin.

        Args:
            box: where to draw.
            heights: shape (width + 1,), rows of the canvas at the columns' edges; NaN where there is no curve.
            colour: its colour.
            dash: length of dashes in the theme's pixels, with gaps of half of it; 0 for a whole line.
            thickness: in the theme's pixels.
        """
        upper, lower = np.minimum(heights[:-1], heights[1:]), np.maximum(heights[:-1], heights[1:])
        half = max(thickness * self.unit, 1.0) / 2
        rows = box.y + np.arange(box.height)[:, np.newaxis]
        cover = np.minimum(lower + half, rows + 1) - np.maximum(upper - half, rows)
        cover = np.clip(np.nan_to_num(cover), 0.0, 1.0)
        # Where it falls steeply a curve would be thinner than elsewhere, but for half of it on either side.
        cover[:, 1:-1] = np.maximum(cover[:, 1:-1], np.maximum(cover[:, :-2], cover[:, 2:]) / 2)
        if dash:
            passed = np.cumsum(np.hypot(1.0, np.nan_to_num(lower - upper)))
            cover *= passed / (dash * self.unit) % 1.5 < 1
        self._blend(box, cover, colour)

    def area(self, box: Box, heights: FloatArray, colour: Colour) -> None:
        """Fill what lies below a curve, given as for `curve`, in a box."""
        rows = box.y + np.arange(box.height)[:, np.newaxis]
        inside = self.pixels[box.y : box.bottom, box.x : box.right]
        inside[rows >= np.minimum(heights[:-1], heights[1:])] = colour

    def diamond(self, x: float, y: float, radius: float, colour: Colour) -> None:
        """Draw a filled diamond around a point."""
        reach = self.px(radius)
        centre_x, centre_y = round(x), round(y)
        corners = [(centre_x, centre_y - reach), (centre_x + reach, centre_y)]
        corners += [(centre_x, centre_y + reach), (centre_x - reach, centre_y)]
        pygame.gfxdraw.filled_polygon(self.surface, corners, colour)
        pygame.gfxdraw.aapolygon(self.surface, corners, colour)

    def _blend(self, box: Box, cover: FloatArray, colour: Colour) -> None:
        """Lay a colour over a box; cover has shape (height, width) and values in [0, 1]."""
        rows, columns = np.nonzero(cover)
        share = cover[rows, columns, np.newaxis]
        rows, columns = rows + box.y, columns + box.x
        under = self.pixels[rows, columns]
        self.pixels[rows, columns] = np.round(under + share * (np.array(colour) - under)).astype(np.uint8)

    # ---- fonts ----------------------------------------------------------------------------------------------

    def drop_fonts(self) -> None:
        """Forget the fonts, but not the texts: to be called after each frame.

        Somebody else's `pygame.quit()` between two frames frees what fonts hold, and using them would crash.
        """
        self._fonts.clear()

    def _font(self, size: int) -> pygame.font.Font:
        if size not in self._fonts:
            pygame.font.init()
            self._fonts[size] = pygame.font.Font(None, round(size * self.unit * _FONT_SIZE * _FINE))
        return self._fonts[size]

    def _image(self, text: str, size: int, colour: Colour) -> pygame.Surface:
        key = (text, size, colour)
        if key not in self._texts:
            if len(self._texts) >= _MOST_TEXTS:
                self._texts.clear()
            large = self._font(size).render(text, True, colour)
            small = (self.width(text, size), max(1, large.get_height() // _FINE))
            self._texts[key] = pygame.transform.smoothscale(large, small)
        return self._texts[key]
