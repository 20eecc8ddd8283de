"""Grids of parameters, as they are written on the command line, and the policies on them."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence

import numpy as np

from queue_env.rules import parse_policy

__all__ = ["candidates", "parse_grid"]

_FORMS = "NAME=LOW:HIGH:COUNT, NAME=LOW:HIGH:COUNT:log or NAME=VALUE,VALUE,..."


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
    if not name or not values:
        raise ValueError(f"--parameter must be {_FORMS}, got {text!r}")
    if ":" not in values:
        return name, [value.strip() for value in values.split(",")]
    low, high, count, *scale = values.split(":") + [""] * (values.count(":") < 2)
    numbers = [_number(part) for part in (low, high, count)]
    if not all(map(math.isfinite, numbers)) or numbers[2] < 1 or numbers[2] % 1 or scale not in ([], ["log"]):
        raise ValueError(f"--parameter must be {_FORMS}, with a whole COUNT of at least 1, got {text!r}")
    if scale and not min(numbers[:2]) > 0:
        raise ValueError(f"--parameter must have LOW and HIGH above 0 for log, got {text!r}")
    space = np.geomspace if scale else np.linspace
    return name, [f"{value:g}" for value in space(numbers[0], numbers[1], int(numbers[2]))]


def candidates(policy: str, grids: Sequence[str]) -> list[str]:
    """The labels of a policy with every combination of the values in some grids.

    Args:
        policy: a name, with parameters that stay as they are, such as ``backlog-split:b=1``.
        grids: one text for each other parameter, as in `parse_grid`.

    Raises:
        ValueError: a policy, a parameter or a value is not allowed, or a parameter is given twice.
    """
    values = [(name, given) for name, given in map(parse_grid, grids)]
    fixed = parse_policy(policy)
    names = [*fixed.parameters, *(name for name, _ in values)]
    if len(set(names)) < len(names):
        raise ValueError(f"--parameter must give each parameter once, got {', '.join(names)}")
    labels = []
    for choice in itertools.product(*(given for _, given in values)):
        chosen: Mapping[str, object] = dict(zip((name for name, _ in values), choice, strict=True))
        labels.append(parse_policy({"policy": fixed.name, **fixed.parameters, **chosen}).label)
    return list(dict.fromkeys(labels))


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan
