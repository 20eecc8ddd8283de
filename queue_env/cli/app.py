"""The program: its commands, its version, and how it ends when something goes wrong."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Annotated, ParamSpec

import typer

from queue_env._version import __version__
from queue_env.cli.catalogue import bench, list_all, theory
from queue_env.cli.simulate import simulate

__all__ = ["app", "main"]

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


app = typer.Typer(name="queue-env", no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False)
app.command("list")(reporting_errors(list_all))
app.command("simulate")(reporting_errors(simulate))
app.command("theory")(reporting_errors(theory))
app.command("bench")(reporting_errors(bench))


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"queue-env {__version__}")
        raise typer.Exit


@app.callback()
def program(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Simulate scheduling policies in a queue with n servers, and compare the tails of response time."""


def main() -> None:
    """Run the command line."""
    app(prog_name="queue-env")
