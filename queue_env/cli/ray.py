"""The option `--ray [ADDRESS]`, whose value may be left out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from typer.core import TyperCommand

__all__ = ["AUTO", "WithRay", "with_address"]

AUTO = "auto"
_OPTION = "--ray"


class WithRay(TyperCommand):
    """A command with the option `--ray [ADDRESS]`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Give `--ray` its value where it has none, and parse."""
        return super().parse_args(ctx, with_address(args))


def with_address(arguments: Sequence[str]) -> list[str]:
    """The arguments with "auto" after a `--ray` that no address follows.

    An address is auto, local, or has a colon: neither a scenario nor an option is taken for one.
    """
    complete: list[str] = []
    for index, argument in enumerate(arguments):
        complete.append(argument)
        if argument == _OPTION and not any(map(_is_address, arguments[index + 1 : index + 2])):
            complete.append(AUTO)
    return complete


def _is_address(text: str) -> bool:
    return text in (AUTO, "local") or (":" in text and not text.startswith("-"))
