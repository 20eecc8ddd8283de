"""``python -m train.es``: learn a policy for a scenario, or for several, by CMA-ES on the tail score."""

from __future__ import annotations

import math
import os
import shlex
import sys
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer
from numpy.typing import NDArray

from queue_env.cli import options
from queue_env.cli.app import reporting_errors
from queue_env.cli.inputs import check_threads, check_writable
from queue_env.cli.output import json_text, print_tables
from queue_env.distributions.checks import positive, refuse, whole
from queue_env.network import MOST_LAYERS, MOST_WIDE, check_hidden, write_network
from queue_env.report import Table
from queue_env.tail import Interval, t_interval
from train.bar import search_bar
from train.curves import Curves

if TYPE_CHECKING:
    from train.search import Search, Task

__all__ = ["app", "main"]

LEARNED = "learned"
LATEST = 100.0  # mean service times: up to then the tail is guarded, so the range has to begin by then


@reporting_errors
def main(
    scenarios: Annotated[
        str,
        typer.Option("--scenario", metavar="NAME[,NAME]", help="Named scenarios; one network is trained for all."),
    ],
    out: Annotated[Path, typer.Option(metavar="FILE.json", help="The policy; what a resumption needs is beside it.")],
    hidden: Annotated[
        str, typer.Option(metavar="WIDTHS", help="Hidden layers, such as 8 or 8,8; without one it is a logistic rule.")
    ] = "",
    generations: Annotated[int, typer.Option(help="Generations in all, those before a resumption too.")] = 60,
    population: Annotated[
        int | None, typer.Option(help="Candidates of a generation, at least 4; 4 + 3 ln(weights) if not given.")
    ] = None,
    replications: Annotated[int, typer.Option(help="Replications of each candidate on each scenario.")] = 4,
    seed: Annotated[int, typer.Option(help="Of all random numbers.")] = 0,
    start: Annotated[
        str, typer.Option(help="Where the search begins: at a rule that is known to be good, or at zero weights.")
    ] = "rule",
    tail_range: Annotated[
        tuple[float, float],
        typer.Option("--range", metavar="T0 T1", help="Times over which the score averages, in mean service times."),
    ] = (1.0, 1e4),
    within: Annotated[
        float | None,
        typer.Option(
            help="Share by which R(t) may be above srpt's, from T0 to t = 100; by default it may be as high as the "
            "worse of srpt's and dynasplit's."
        ),
    ] = None,
    threads: options.Threads = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on where the same command was interrupted.")] = False,
    tensorboard: Annotated[
        Path | None, typer.Option(metavar="DIRECTORY", help="Where to write curves for TensorBoard.")
    ] = None,
    as_json: options.Json = False,
) -> None:
    """Learn the anchor's rate as a small network of the state, by CMA-ES on the tail score.

    All candidates of a generation meet the same jobs; every generation meets others. The mean of the distribution is
    tried on jobs that stay the same. The best mean is kept, and at the end it meets fresh jobs, beside reference
    policies. `queue-env score SCENARIO --policy learned:FILE.json` scores it.

    Example: python -m train.es --scenario high-load-2 --hidden 4 --generations 100 --out policy.json
    """
    task = _task(scenarios, hidden, population, replications, seed, start, tail_range, within)
    whole("train.es", "generations", generations, 1)
    workers = check_threads(threads) or os.cpu_count() or 1
    kept = _search_file(out)
    if tensorboard is not None:
        check_writable("--tensorboard", tensorboard)
        tensorboard.mkdir(parents=True, exist_ok=True)
    try:
        about = _learn(task, out, kept, resume, generations, workers, tensorboard)
    except KeyboardInterrupt:
        there = f"the same command with --resume goes on from {kept}" if kept.exists() else "nothing was kept"
        raise KeyboardInterrupt(there) from None
    if as_json:
        typer.echo(json_text("train.es", training=about))
    else:
        print_tables(fresh_tables(about["fresh"]), f"Wrote {out}. On jobs that had no part in the search:")


def _task(
    scenarios: str,
    hidden: str,
    population: int | None,
    replications: int,
    seed: int,
    start: str,
    tail_range: tuple[float, float],
    within: float | None,
) -> Task:
    try:
        from train.search import STARTS, Task
    except ModuleNotFoundError as error:
        raise ImportError(f"train.es needs {error.name}: install queue-env[train]") from error
    names = tuple(name.strip() for name in scenarios.split(","))
    if len(set(names)) < len(names):
        raise ValueError(f"--scenario must name each scenario once, got {scenarios!r}")
    try:
        widths = check_hidden("train.es", [int(width) for width in hidden.split(",")] if hidden.strip() else [])
    except ValueError as error:
        allowed = f"at most {MOST_LAYERS - 1} layers, each a whole number from 1 to {MOST_WIDE}, such as 8 or 8,8"
        raise ValueError(f"--hidden must be {allowed}, got {hidden!r}") from error
    whole("train.es", "replications", replications, 1)
    whole("train.es", "seed", seed, 0)
    if start not in STARTS:
        raise ValueError(f"--start must be {' or '.join(STARTS)}, got {start!r}")
    if not 0 < tail_range[0] < tail_range[1] < math.inf or tail_range[0] > LATEST:
        got = f"{tail_range[0]:g} {tail_range[1]:g}"
        raise ValueError(
            f"--range must be two times, 0 < T0 < T1, and T0 <= {LATEST:g} [mean service times], got {got}"
        )
    if within is not None:
        positive("train.es", "within", within)
    task = Task(names, widths, population or 0, replications, seed, start, tail_range, within)
    count = 4 + math.floor(3 * math.log(len(task.first))) if population is None else population
    whole("train.es", "population", count, 4)
    return replace(task, population=count)


def _search_file(out: Path) -> Path:
    """Return where a search is kept whose policy goes to `out`; both can be written, and their directory is there."""
    if out.suffix != ".json":
        raise ValueError(f"--out must be a file whose name ends in .json, got {str(out)!r}")
    kept = out.with_suffix(".search")
    try:
        check_writable("--out", out.parent, "a file in a directory")
        for file in (out, kept):
            if file.is_dir():
                raise ValueError(f"--out must be a file, but {file} is a directory")
        out.parent.mkdir(parents=True, exist_ok=True)
        with NamedTemporaryFile(prefix=f"{kept.name}.part", dir=out.parent):
            pass  # permissions do not tell of a read-only disk, nor of a name that is too long
    except OSError as error:
        raise ValueError(f"--out must be a file that can be written, got {str(out)!r}: {error.strerror}") from error
    return kept


def _learn(
    task: Task, out: Path, kept: Path, resume: bool, generations: int, threads: int, tensorboard: Path | None
) -> dict[str, Any]:
    """Search, writing the best policy so far; returns what the policy's file says of its training."""
    from train.search import Search

    typer.echo(f"{', '.join(task.scenarios)}: {len(task.first)} weights, of {', '.join(task.features)}", err=True)
    about = {
        "command": shlex.join(["python", "-m", "train.es", *(word for word in sys.argv[1:] if word != "--resume")]),
        "date": datetime.now(UTC).date().isoformat(),
        "scenarios": list(task.scenarios),
    }
    with ExitStack() as stack:
        pool = stack.enter_context(ThreadPoolExecutor(threads))
        curves = None if tensorboard is None else Curves(tensorboard)
        search = Search(task, pool, kept, resume=resume)
        done = len(search.generations)
        if generations < done:  # the command would be kept beside a policy that it cannot give
            refuse("train.es", "generations", f"at least {done}, which {str(kept)!r} has already", generations)
        bar = stack.enter_context(search_bar(search.steps(generations), _describe(search)))
        for generation in search.run(generations, bar.advance):
            bar.describe(_describe(search))
            if curves is not None:
                curves.add(search)
            if search.best is generation:
                write_network(out, task.network(generation.point), about | _progress(search))
        scores = search.final(bar.advance)
    about |= _progress(search) | {"fresh": {name: compared(found) for name, found in scores.items()}}
    write_network(out, task.network(search.best.point), about)
    return about


def _describe(search: Search) -> str:
    if not search.generations:
        return "generation 1"
    last = search.generations[-1]
    nearest = min(search.references.values())
    best = search.best.validation
    return f"generation {last.number + 1}: {last.validation:.4f}, best {best:.4f} (reference {nearest:.4f})"


def _progress(search: Search) -> dict[str, Any]:
    """What a policy's file says of the search: on the jobs of the validation."""
    return {
        "generations": len(search.generations),
        "best_generation": search.best.number,
        "validation": {LEARNED: search.best.validation, **search.references},
    }


def compared(scores: Mapping[str, NDArray[np.float64]]) -> dict[str, dict[str, list[float]]]:
    """Return score and difference to the first policy with the ends of 95 % intervals, from scores by replication."""
    first = next(iter(scores.values()))
    return {
        name: {"score": list(t_interval(rows)[:3]), "difference": list(t_interval(rows - first)[:3])}
        for name, rows in scores.items()
    }


def fresh_tables(fresh: Mapping[str, Mapping[str, Mapping[str, list[float]]]]) -> list[Table]:
    """Return a table for each scenario, from `compared` scores."""
    return [
        Table(
            name,
            ("policy", "tail score", "difference to the first"),
            tuple(
                (policy, _interval(row["score"]), _interval(row["difference"]) if i else None)
                for i, (policy, row) in enumerate(policies.items())
            ),
        )
        for name, policies in fresh.items()
    ]


def _interval(ends: list[float]) -> Interval:
    return Interval(ends[0], ends[1], ends[2], 0.95)


app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
app.command()(main)

if __name__ == "__main__":
    app(prog_name="python -m train.es")
