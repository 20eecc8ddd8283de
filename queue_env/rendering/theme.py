"""Colours, sizes and distances of the pictures: the one place for how they look."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = ["THEME", "Colour", "Theme", "age_colours", "age_position", "ink_on"]

Colour: TypeAlias = tuple[int, int, int]


@dataclass(frozen=True)
class Theme:
    """How pictures look. Lengths are in pixels of a picture of `base` and grow with it.

    Attributes:
        base: width and height for which the lengths are meant.
        least: the smallest width and height at which text can be read.
        background, card, border, grid: surfaces and their lines.
        track: the empty part of a bar.
        ink, muted: text, and text of less weight.
        gauge: a job's rate.
        anchor, anchor_tint: the anchor's mark, and the ground of its row.
        curve, curve_fill, bound: the tail so far, the ground below it, and the lower bound.
        ages: (position, colour) over the logarithm of age, 0 at t0 and 1 at t1. Blue to yellow, which all
            kinds of colour blindness tell apart, then darker and darker, which needs no colours at all.
        title, text, small: heights of letters.
        margin, padding: around and inside of the cards.
        header: height of the header.
        row: height of a job's row.
        left: share of the width that belongs to the jobs.
        servers: share of the right side's height that belongs to the servers.
    """

    base: tuple[int, int] = (960, 600)
    least: tuple[int, int] = (640, 400)
    background: Colour = (238, 241, 245)
    card: Colour = (255, 255, 255)
    border: Colour = (213, 219, 227)
    grid: Colour = (230, 234, 239)
    track: Colour = (227, 232, 238)
    ink: Colour = (30, 42, 54)
    muted: Colour = (107, 120, 134)
    gauge: Colour = (68, 86, 106)
    anchor: Colour = (0, 121, 92)
    anchor_tint: Colour = (226, 243, 236)
    curve: Colour = (0, 114, 178)
    curve_fill: Colour = (227, 240, 248)
    bound: Colour = (58, 70, 82)
    ages: tuple[tuple[float, Colour], ...] = (
        (0.0, (127, 178, 221)),
        (0.1, (163, 207, 174)),
        (0.2, (243, 215, 122)),
        (0.4, (240, 169, 60)),
        (0.6, (220, 106, 58)),
        (0.8, (169, 49, 78)),
        (1.0, (85, 21, 66)),
    )
    title: int = 19
    text: int = 12
    small: int = 11
    margin: int = 12
    padding: int = 12
    header: int = 62
    row: int = 19
    left: float = 0.575
    servers: float = 0.36


THEME = Theme()


def age_position(ages: ArrayLike, tail_range: tuple[float, float]) -> NDArray[np.float64]:
    """Where ages lie on the logarithmic way from t0 (0) to t1 (1), cut to [0, 1]; any shape."""
    low, high = tail_range
    within = np.clip(np.asarray(ages, dtype=np.float64), low, high)
    return np.asarray(np.log(within / low) / np.log(high / low))


def age_colours(ages: ArrayLike, tail_range: tuple[float, float], theme: Theme = THEME) -> NDArray[Any]:
    """Colours of ages, calm below t0 and most alarming from t1 on; uint8, shape (*ages.shape, 3)."""
    position = age_position(ages, tail_range)
    stops = [stop for stop, _ in theme.ages]
    channels = np.transpose([colour for _, colour in theme.ages])
    mixed = [np.interp(position, stops, channel) for channel in channels]
    return np.stack(mixed, axis=-1).round().astype(np.uint8)


def ink_on(ground: Colour, theme: Theme = THEME) -> Colour:
    """The colour of text that can be read on a ground."""
    red, green, blue = ground
    bright = 0.299 * red + 0.587 * green + 0.114 * blue > 140
    return theme.ink if bright else theme.card
