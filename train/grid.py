"""Grids of parameters, as they are written on the command line, and the policies on them."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import NoReturn

import numpy as np

from queue_env.rules import parse_policy

__all__ = ["candidates", "parse_grid"]


def parse_grid(text: str) -> tuple[str, list[str]]:
    """Read the values to try of one parameter.

    Args:
        text: ``d=0.9:2.3:8`` for 8 values at equal distances from 0.9 to 2.3, ``d=0.1:10:8:log`` for equal
            ratios, or a list, ``d=1,1.5,2`` or ``margin=log,power``.

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
            _refuse("NAME=LOW:HIGH:COUNT, NAME=LOW:HIGH:COUNT:log or NAME=VALUE,VALUE,...", text)
    try:
        first, last, number = float(low), float(high), int(count)
    except ValueError:
        _refuse("NAME=LOW:HIGH:COUNT with two numbers and a whole one", text)
    if not (math.isfinite(first) and math.isfinite(last) and number >= 1):
        _refuse("NAME=LOW:HIGH:COUNT with finite numbers and COUNT >= 1", text)
    if scale and not min(first, last) > 0:
        _refuse("NAME=LOW:HIGH:COUNT:log with LOW and HIGH above 0", text)
    points = np.geomspace(first, last, number) if scale else np.linspace(first, last, number)
    return name, [f"{value:g}" for value in points]


def candidates(policy: str, grids: Sequence[str]) -> list[str]:
    """The labels of a policy with every combination of the values in some grids, each once.

    Args:
        policy: a name, with parameters that stay as they are, such as ``backlog-split:b=1``.
        grids: one text for each other parameter, as in `parse_grid`.

    Raises:
        ValueError: a policy, a parameter or a value is not allowed, or a parameter is given twice.
    """
    fixed = parse_policy(policy)
    axes = [parse_grid(text) for text in grids]
    names = [*fixed.parameters, *(name for name, _ in axes)]
    if len(set(names)) < len(names):
        raise ValueError(f"--parameter must name each parameter once, got {', '.join(names)}")
    labels = []
    for choice in itertools.product(*(values for _, values in axes)):
        given = zip(names, (*fixed.parameters.values(), *choice), strict=True)
        labels.append(parse_policy({"policy": fixed.name, **dict(given)}).label)
    return list(dict.fromkeys(labels))


def _refuse(allowed: str, text: str) -> NoReturn:
    raise ValueError(f"--parameter must be {allowed}, got {text!r}")
