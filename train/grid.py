"""The policies on grids of parameters."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from queue_env.cli.grids import parse_grid
from queue_env.rules import parse_policy

__all__ = ["candidates"]


def candidates(policy: str, grids: Sequence[str]) -> list[str]:
    """The labels of a policy with every combination of the values in some grids, each once.

    Args:
        policy: a name, with parameters that stay as they are, such as ``backlog-split:b=1``.
        grids: one text for each other parameter, as in `parse_grid`.

    Raises:
        ValueError: a policy, a parameter or a value is not allowed, or a parameter is given twice.
    """
    fixed = parse_policy(policy)
    axes = [parse_grid(text, "--parameter") for text in grids]
    names = [*fixed.parameters, *(name for name, _ in axes)]
    if len(set(names)) < len(names):
        raise ValueError(f"--parameter must name each parameter once, got {', '.join(names)}")
    labels = []
    for choice in itertools.product(*(values for _, values in axes)):
        given = zip(names, (*fixed.parameters.values(), *choice), strict=True)
        labels.append(parse_policy({"policy": fixed.name, **dict(given)}).label)
    return list(dict.fromkeys(labels))
