"""What is written on the command line, as values: counts, overrides of a scenario, places to write to."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

__all__ = ["check_writable", "parse_count", "parse_overrides"]


def parse_count(option: str, text: str, least: int = 1) -> int:
    """Read a whole number such as 20000, 20_000 or 2e4.

    Raises:
        ValueError: it is no whole number, or less than `least`.
    """
    try:
        number = float(text)
    except ValueError:
        number = float("nan")
    if not number >= least or not number.is_integer():
        raise ValueError(f"{option} must be a whole number >= {least}, such as 20000 or 2e4, got {text!r}")
    return int(number)


def parse_overrides(pairs: Sequence[str]) -> dict[str, Any]:
    """Read KEY=VALUE pairs; a value is JSON, or else a text.

    Raises:
        ValueError: a pair has no key or no "=".
    """
    overrides: dict[str, Any] = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not key.strip() or not equals:
            raise ValueError(f"--set must be KEY=VALUE, such as --set load=0.9, got {pair!r}")
        overrides[key.strip()] = _value(value)
    return overrides


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        if text.strip()[:1] in ("{", "["):
            raise ValueError(f"--set: {text!r} is not valid JSON") from None
        return text


def check_writable(option: str, directory: Path) -> None:
    """Raise a ValueError unless the directory can be written to, or be made.

    Args:
        option: the option that gave the directory, for the message.
        directory: need not be there yet, nor its parents.
    """
    there = next(path for path in (directory, *directory.absolute().parents) if path.exists())
    if not there.is_dir():
        raise ValueError(f"{option} must be a directory, but {there} is a file")
    if not os.access(there, os.W_OK | os.X_OK):
        raise ValueError(f"{option} must be a directory that can be written to, which {there} is not")
