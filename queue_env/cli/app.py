"""The program: its commands and its version."""

from __future__ import annotations

from typing import Annotated

import typer

from queue_env._version import __version__
from queue_env.cli.catalogue import bench, list_all, theory
from queue_env.cli.errors import reporting_errors
from queue_env.cli.explain import explain
from queue_env.cli.export import export
from queue_env.cli.figure import figure
from queue_env.cli.ray import WithRay
from queue_env.cli.score import score
from queue_env.cli.simulate import simulate
from queue_env.cli.sweep import sweep

__all__ = ["app", "main", "reporting_errors"]

app = typer.Typer(name="queue-env", no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False)
app.command("list")(reporting_errors(list_all))
app.command("simulate")(reporting_errors(simulate))
app.command("score", cls=WithRay)(reporting_errors(score))
app.command("sweep", cls=WithRay)(reporting_errors(sweep))
app.add_typer(figure, name="figure")
app.command("explain")(reporting_errors(explain))
app.command("export")(reporting_errors(export))
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
