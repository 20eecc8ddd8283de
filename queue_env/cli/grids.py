"""Grids of parameters, as they are written on the command line."""

from __future__ import annotations

import math
from typing import NoReturn

import numpy as np

__all__ = ["parse_grid"]

MOST_VALUES = 10_000


def parse_grid(text: str, option: str) -> tuple[str, list[str]]:
    """Read the values to try of one parameter.

    Args:
        text: ``d=0.9:2.3:8`` for 8 values at equal distances from 0.9 to 2.3, ``d=0.1:10:8:log`` for equal
            ratios, or a list, ``d=1,1.5,2`` or ``margin=log,power``.
        option: that gave the text, for messages.

    Returns:
        The name of the parameter, and its values as they stand in a policy's label: numbers to six digits.

    Raises:
        ValueError: the text has none of these forms, or its numbers make no grid.
    """
    name, _, values = (part.strip() for part in text.partition("="))
    match values.split(":"):
        case [given] if name and given:
            return name, [value.strip() for value in given.split(",")]
        case [low, high, count, *scale] if name and scale in ([], ["log"]):
            pass
        case _:
            _refuse(option, "NAME=LOW:HIGH:COUNT, NAME=LOW:HIGH:COUNT:log or NAME=VALUE,VALUE,...", text)
    try:
        first, last, number = float(low), float(high), int(count)
    except ValueError:
        _refuse(option, "NAME=LOW:HIGH:COUNT with two numbers and a whole one", text)
    if not (math.isfinite(first) and math.isfinite(last) and 1 <= number <= MOST_VALUES):
        _refuse(option, f"NAME=LOW:HIGH:COUNT with finite numbers and COUNT from 1 to {MOST_VALUES}", text)
    if scale and not min(first, last) > 0:
        _refuse(option, "NAME=LOW:HIGH:COUNT:log with LOW and HIGH above 0", text)
    points = np.geomspace(first, last, number) if scale else np.linspace(first, last, number)
    return name, [f"{value:g}" for value in points]


def _refuse(option: str, allowed: str, text: str) -> NoReturn:
    raise ValueError(f"{option} must be {allowed}, got {text!r}")
