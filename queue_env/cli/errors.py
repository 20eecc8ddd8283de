"""How commands end when something goes wrong, or when they are interrupted."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import ParamSpec

import typer

__all__ = ["INTERRUPTED", "WRONG_INPUT", "reporting_errors"]

P = ParamSpec("P")

WRONG_INPUT = 2
INTERRUPTED = 130


def reporting_errors(command: Callable[P, None]) -> Callable[P, None]:
    """The command with a line on stderr and an exit code in place of a traceback, for what users can mend."""

    @functools.wraps(command)
    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        try:
            command(*args, **kwargs)
        except BrokenPipeError:
            raise
        except (ValueError, ImportError, OSError) as error:
            typer.echo(f"error: {_one_line(error)}", err=True)
            raise typer.Exit(WRONG_INPUT) from error
        except KeyboardInterrupt as error:
            typer.echo(f"interrupted: {str(error) or 'nothing was kept'}", err=True)
            raise typer.Exit(INTERRUPTED) from error

    return run


def _one_line(error: Exception) -> str:
    if isinstance(error, OSError) and error.filename is not None:
        return f"{error.filename}: {error.strerror}"
    return " ".join(str(error).split())
