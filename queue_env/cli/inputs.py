"""What is written on the command line, as values: counts, overrides of a scenario, places to write to."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

if TYPE_CHECKING:
    from queue_env.scenarios import Scenario

__all__ = [
    "check_figure",
    "check_file",
    "check_out",
    "check_positive",
    "check_seed",
    "check_threads",
    "check_writable",
    "checkpoint_file",
    "named_scenario",
    "parse_count",
    "parse_overrides",
]


def named_scenario(name: str, changes: Mapping[str, Any], overrides: Sequence[str]) -> Scenario:
    """The named scenario, with what options change (None: nothing), and the pairs of --set.

    Raises:
        ValueError: there is no such scenario, or a change is not allowed.
    """
    from queue_env.scenarios import scenario

    given = {key: value for key, value in changes.items() if value is not None}
    return scenario(name, **{**parse_overrides(overrides), **given})


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


def check_positive(option: str, number: float) -> float:
    """Return the number; a ValueError unless it is finite and > 0."""
    if not 0 < number < math.inf:
        raise ValueError(f"{option} must be a finite number > 0, got {number!r}")
    return number


def check_seed(seed: int) -> int:
    """Return the seed.

    Raises:
        ValueError: it is negative.
    """
    if seed < 0:
        raise ValueError(f"--seed must be at least 0, got {seed}")
    return seed


def check_threads(threads: int | None) -> int | None:
    """Return the number of threads; a ValueError unless it is at least 1, or not given."""
    if threads is not None and threads < 1:
        raise ValueError(f"--threads must be at least 1, got {threads}")
    return threads


def checkpoint_file(directory: Path | None, label: str) -> Path | None:
    """The file of a policy in a directory of checkpoints; different labels have different files."""
    return None if directory is None else directory / f"{quote(label, safe='=,')}.npz"


def check_out(directory: Path | None) -> None:
    """Raise a ValueError or an ImportError if results cannot be saved to --out, where that is given."""
    if directory is not None:
        check_writable("--out", directory)
        from queue_env.report import require_matplotlib

        require_matplotlib()


def check_figure(out: Path, checkpoint: Path | None) -> None:
    """Raise a ValueError or an ImportError if a figure cannot be saved to --out, or work to --checkpoint."""
    from queue_env.report import require_matplotlib

    if out.suffix != ".png":
        raise ValueError(f"--out must be a file whose name ends in .png, got {str(out)!r}")
    check_file("--out", out)
    if checkpoint is not None:
        check_writable("--checkpoint", checkpoint)
    require_matplotlib()


def check_file(option: str, path: Path) -> None:
    """Raise a ValueError unless a file can be written there."""
    if path.is_dir():
        raise ValueError(f"{option} must be a file, but {path} is a directory")
    check_writable(option, path.parent, "a file in a directory")


def check_writable(option: str, directory: Path, what: str = "a directory") -> None:
    """Raise a ValueError unless the directory can be written to, or be made.

    Args:
        option: the option that gave the directory, for the message.
        directory: need not be there yet, nor its parents.
        what: the option must be, for the message.
    """
    there = next(path for path in (directory, *directory.absolute().parents) if path.exists())
    if not there.is_dir():
        raise ValueError(f"{option} must be {what}, but {there} is a file")
    if not os.access(there, os.W_OK | os.X_OK):
        raise ValueError(f"{option} must be {what} that can be written to, which {there} is not")
