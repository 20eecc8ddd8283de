"""How the commands print and save: tables for people, JSON for programs, and whole files or none."""

from __future__ import annotations

import json
import math
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from queue_env._version import __version__

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from queue_env.comparison import Comparison
    from queue_env.report import Table

__all__ = ["json_text", "print_tables", "save", "write_files"]

UNLIMITED_WIDTH = 300


def json_text(command: str, **content: Any) -> str:
    """The JSON object that a command prints; what is not finite or not known is null."""
    document = {"command": command, "version": __version__, **content}
    return json.dumps(_plain(document), indent=2, ensure_ascii=False, allow_nan=False)


def print_tables(tables: Iterable[Table], heading: str = "") -> None:
    """Print tables, as wide as they need to be where stdout is no terminal."""
    from rich.console import Console

    from queue_env.report import rich_table

    console = Console(width=None if sys.stdout.isatty() else UNLIMITED_WIDTH, highlight=False)
    with console.capture() as capture:
        for table in tables:
            console.print(rich_table(table))
    lines = [heading] if heading else []
    lines += [line.rstrip() for line in capture.get().splitlines()]
    typer.echo("\n".join(lines))


def save(directory: Path, results: Comparison, tables: Sequence[Table], heading: str, document: str) -> None:
    """Write result.json, table.csv, table.md, tail.png, and the records of each policy where there are any."""
    from queue_env.report import csv_text, markdown, tail_figure

    pages = [f"{heading}\n", *map(markdown, tables)]
    texts = {"result.json": document + "\n", "table.csv": csv_text(tables), "table.md": "\n".join(pages)}
    directory.mkdir(parents=True, exist_ok=True)
    records = _save_records(directory, results)
    write_files(directory, texts, {"tail.png": tail_figure(results, heading)}, records)


def write_files(
    directory: Path, texts: Mapping[str, str], figures: Mapping[str, Figure], others: Sequence[str] = ()
) -> None:
    """Write texts and figures by the names of their files, and say so on stderr.

    Each is written beside its place and then renamed: it replaces what is there as a whole or not at all.

    Args:
        directory: made if it is not there.
        texts: by the names of the files.
        figures: the same; the name says the format, .png or .svg.
        others: names of files that were written already.
    """
    from queue_env.report import atomic_file

    directory.mkdir(parents=True, exist_ok=True)
    for name, text in texts.items():
        with atomic_file(directory / name) as file:
            file.write(text.encode())
    for name, figure in figures.items():
        with atomic_file(directory / name) as file:
            figure.savefig(file, format=name.rpartition(".")[2])
    typer.echo(f"wrote {', '.join([*texts, *figures, *others])} to {directory}", err=True)


def _save_records(directory: Path, results: Comparison) -> list[str]:
    import numpy as np

    from queue_env.report import atomic_file

    names = []
    for policy, result in results.items():
        if result.records is not None:
            names.append(f"records-{re.sub(r'[^A-Za-z0-9.=-]+', '_', policy)}.npz")
            arrays: Any = result.records
            with atomic_file(directory / names[-1]) as file:
                np.savez_compressed(file, **arrays)
    return names


def _plain(value: Any) -> Any:
    """The value in the types of JSON, with null for numbers that are not finite."""
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if hasattr(value, "tolist"):  # a NumPy scalar or array
        return _plain(value.tolist())
    return None if isinstance(value, float) and not math.isfinite(value) else value
