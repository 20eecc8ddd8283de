"""Estimates for a figure, policy by policy, each with a checkpoint of its own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import typer

from queue_env.cli.inputs import checkpoint_file
from queue_env.interrupts import Interrupts

if TYPE_CHECKING:
    from queue_env.scenarios import Scenario

__all__ = ["estimate_each"]


class _Estimate(Protocol):
    @property
    def reached(self) -> bool: ...


Found = TypeVar("Found", bound=_Estimate)


def estimate_each(
    estimate: Callable[..., Found],
    model: Scenario,
    policies: Sequence[tuple[Any, str]],
    directory: Path | None,
    interrupts: Interrupts,
) -> list[Found]:
    """Return what is estimated for each policy; says on stderr where it is not as precise as was asked for.

    Args:
        estimate: of a policy, with the keyword `checkpoint`, a file or None.
        model: the scenario.
        policies: each with its label.
        directory: of checkpoints.
        interrupts: looked at after each policy.

    Raises:
        KeyboardInterrupt: interrupted.
    """
    found = []
    for policy, label in policies:
        also = "" if directory is None else f"; the same command goes on from what is in {directory}"
        try:
            found.append(estimate(policy, checkpoint=checkpoint_file(directory, f"{model.name}_{label}")))
        except KeyboardInterrupt:
            raise KeyboardInterrupt(f"no figure was drawn{also}") from None
        if interrupts.seen:  # the estimate is of what there was by then, which is not what was asked for
            raise KeyboardInterrupt(f"no figure was drawn{also}")
        if not found[-1].reached:
            typer.echo(f"note: {model.name}, {label}: the intervals are wider than was asked for", err=True)
    return found
