"""What the trainings by reinforcement learning have in common on the command line."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import typer

from queue_env.cli import options
from queue_env.cli.inputs import check_positive, check_threads, check_writable, parse_count
from queue_env.cli.output import json_text, print_tables

if TYPE_CHECKING:
    from train.run_settings import Settings

__all__ = ["Asked", "needed", "report"]

Scenarios: TypeAlias = Annotated[
    str | None,
    typer.Option("--scenario", metavar="NAME[,NAME]", help="Named scenarios; one policy is trained for all."),
]
Out: TypeAlias = Annotated[
    Path, typer.Option(metavar="DIRECTORY", help="For the policy, its curve, and what a resumption needs.")
]
SettingsFile: TypeAlias = Annotated[
    Path | None,
    typer.Option("--settings", metavar="FILE.yaml", help="In place of the scenario's file in train/settings."),
]
Steps: TypeAlias = Annotated[
    str | None, typer.Option(metavar="COUNT", help="Decisions in all, such as 4e6, those before a resumption too.")
]
Minutes: TypeAlias = Annotated[
    float | None, typer.Option(help="After these the training ends, at the next evaluation, even with steps left.")
]
Seed: TypeAlias = Annotated[int | None, typer.Option(help="Of all random numbers.")]
Resume: TypeAlias = Annotated[
    bool,
    typer.Option("--resume", help="Go on where the same command was interrupted. Reads pickles from the directory."),
]
Threads: TypeAlias = Annotated[int | None, typer.Option(help="Threads of the evaluations; results depend on none.")]
TensorBoard: TypeAlias = Annotated[
    Path | None, typer.Option(metavar="DIRECTORY", help="Where to write curves for TensorBoard.")
]
Json = options.Json


@dataclass(frozen=True)
class Asked:
    """The options of a training."""

    scenarios: str | None
    out: Path
    settings: Path | None
    steps: str | None
    minutes: float | None
    seed: int | None
    resume: bool
    threads: int | None
    tensorboard: Path | None

    def checked(self, name: str, accepted: type) -> tuple[Settings, dict[str, Any]]:
        """Check all options.

        Args:
            name: of the command.
            accepted: class of the algorithm.

        Returns:
            The settings, and the further arguments of `train.run.Run`.

        Raises:
            ValueError: an option is not allowed.
        """
        from train.run import CHECKPOINT
        from train.run_settings import read_settings, settings_file

        names = None if self.scenarios is None else [part.strip() for part in self.scenarios.split(",")]
        steps = None if self.steps is None else parse_count("--steps", self.steps)
        file = self.settings or settings_file(name, names or ["high-load-2"])
        changes = {"scenarios": names, "steps": steps, "seed": self.seed}
        settings = read_settings(f"train.{name}", file, changes, accepted)
        if self.minutes is not None:
            check_positive("--minutes", self.minutes)
        threads = check_threads(self.threads) or os.cpu_count() or 1
        check_writable("--out", self.out)
        kept = self.out / CHECKPOINT
        if kept.exists() and not self.resume:
            raise ValueError(f"--out must be a directory without a training, or --resume be given, but {kept} is there")
        if not kept.exists() and self.resume:
            raise ValueError(f"--resume: there is no training to go on from in {self.out}: {kept.name} is missing")
        if self.tensorboard is not None:
            check_writable("--tensorboard", self.tensorboard)
        further = {"resume": self.resume, "minutes": self.minutes, "threads": threads, "tensorboard": self.tensorboard}
        return settings, further


@contextmanager
def needed(name: str) -> Iterator[None]:
    """Say which extra to install where a package that a training needs is missing."""
    try:
        yield
    except ModuleNotFoundError as error:
        raise ImportError(f"train.{name} needs {error.name}: install queue-env[train]") from error


def report(name: str, out: Path, about: Mapping[str, Any], as_json: bool) -> None:
    """Print what a training has found."""
    from train.es import fresh_tables

    if as_json:
        typer.echo(json_text(f"train.{name}", training=dict(about)))
    else:
        print_tables(fresh_tables(about["fresh"]), f"Wrote {out}. On jobs that had no part in the training:")
