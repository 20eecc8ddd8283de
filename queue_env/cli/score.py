"""The command `score`: the tail scores of policies on a scenario, with intervals and paired differences."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from queue_env.cli import options
from queue_env.cli.inputs import (
    check_out,
    check_positive,
    check_seed,
    check_threads,
    check_writable,
    checkpoint_file,
    named_scenario,
    parse_count,
)
from queue_env.cli.output import json_text, print_tables, write_files
from queue_env.interrupts import Interrupts

if TYPE_CHECKING:
    from queue_env.report import Table
    from queue_env.scenarios import Scenario
    from queue_env.scoring.score import Score, Scores

__all__ = ["Wanted", "checked_run", "heading_of", "load_wanted", "notes_on", "score", "score_each"]

ALL = "all"
DEFAULT_POLICIES = ("fcfs", "srpt", "split", "dynasplit")


def score(
    scenario: options.ScenarioName,
    policies: options.ScoredPolicies = None,
    tail_range: options.TailRange = (1.0, 1e4),
    width: options.Width = 0.02,
    jobs: options.PlainJobs = "1e7",
    most_jobs: options.MostJobs = "1e10",
    seed: options.Seed = 0,
    servers: options.ScenarioServers = None,
    load: options.ScenarioLoad = None,
    overrides: options.Overrides = None,
    threads: options.Threads = None,
    ray: options.Ray = None,
    checkpoint: options.CheckpointDirectory = None,
    out: options.ScoreOut = None,
    as_json: options.Json = False,
) -> None:
    """Score policies by the tail of response time, and compare them. Lower is better.

    In the table, P(beats best) is the probability that a policy is better than the one in the first row, and a
    difference below 0 says that a policy is better than the first of those asked for.

    Example: queue-env score high-load-2 --policy srpt --policy dynasplit --width 0.05 --out results
    """
    check_out(out)
    run = checked_run(tail_range, width, jobs, most_jobs, seed, threads, ray)
    if checkpoint is not None:
        check_writable("--checkpoint", checkpoint)
    model = named_scenario(scenario, {"servers": servers, "load": load}, overrides or ())
    wanted = load_wanted(model, policies, run["tail_range"])
    if checkpoint is not None:
        checkpoint.mkdir(parents=True, exist_ok=True)
    rows, failure = score_each(wanted, model, run, checkpoint)
    if rows:
        _report(model, rows, run, out, as_json)
    if failure is not None:
        raise failure


@dataclass(frozen=True)
class Wanted:
    """A policy to score, and its label."""

    policy: Any
    label: str


def checked_run(
    tail_range: tuple[float, float],
    width: float,
    jobs: str,
    most_jobs: str,
    seed: int,
    threads: int | None,
    ray: str | None = None,
) -> dict[str, Any]:
    """Return the arguments that all scores of a command share.

    Raises:
        ValueError: one is not allowed.
        ImportError: there is no Ray.
    """
    if ray is not None:
        from queue_env.scoring.ray_pool import check_cluster

        check_cluster(ray)
    return {
        "tail_range": check_range(tail_range),
        "rel_half_width": check_positive("--width", width),
        "plain_jobs": parse_count("--jobs", jobs),
        "most_jobs": parse_count("--most-jobs", most_jobs),
        "seed": check_seed(seed),
        "threads": check_threads(threads),
        "ray": ray,
    }


def check_range(ends: tuple[float, float]) -> tuple[float, float]:
    """Return the ends of the range of the score.

    Raises:
        ValueError: they are not two numbers, 0 < T0 < T1.
    """
    if not 0 < ends[0] < ends[1] < float("inf"):
        raise ValueError(f"--range must be two times, 0 < T0 < T1 [mean service times], got {ends[0]:g} {ends[1]:g}")
    return ends


def load_wanted(model: Scenario, names: Sequence[str] | None, tail_range: tuple[float, float]) -> list[Wanted]:
    """Load and check all policies, so that none fails after hours of work on the others."""
    from queue_env.reward import tail_cost
    from queue_env.scoring.named_policies import check_policies, load_policy, stable_policies

    stable = stable_policies(model)
    if names is None:
        names = [name for name in DEFAULT_POLICIES if name in stable]
    every = dict.fromkeys(part for name in names for part in (stable if name == ALL else [name]))
    policies = [load_policy(name, model) for name in every]
    labels = check_policies(policies, model, "score")
    if model.patience is None:
        tail_cost(model, tail_range)
    return [Wanted(policy, label) for policy, label in zip(policies, labels, strict=True)]


def score_each(
    wanted: Sequence[Wanted], model: Scenario, run: dict[str, Any], directory: Path | None
) -> tuple[list[Score], KeyboardInterrupt | ValueError | None]:
    """Return the scores, in the order of the policies, and what has cut them short, if anything."""
    from queue_env.scoring.executors import cluster
    from queue_env.scoring.score import score as score_one

    rows: list[Score] = []
    with Interrupts() as interrupts, cluster(run["ray"]):
        for item in wanted:
            kept = checkpoint_file(directory, item.label)
            try:
                rows.append(score_one(item.policy, model, **run, checkpoint=kept))
            except KeyboardInterrupt:
                return rows, _interrupt(rows, wanted, directory)
            except ValueError as error:  # such as that blocks do not end
                return rows, error
            if interrupts.seen:  # the row is of what there was by then
                return rows, _interrupt(rows, wanted, directory)
    return rows, None


def _interrupt(rows: Sequence[Score], wanted: Sequence[Wanted], directory: Path | None) -> KeyboardInterrupt:
    kept = f"kept {len(rows)} of {len(wanted)} policies" if rows else "no policy was finished"
    also = "" if directory is None else f"; the same command goes on from what is in {directory}"
    return KeyboardInterrupt(kept + also)


def _report(model: Scenario, rows: Sequence[Score], run: dict[str, Any], out: Path | None, as_json: bool) -> None:
    from queue_env.report import score_tables
    from queue_env.scoring.score import Scores

    scores = Scores(rows)
    heading = heading_of(model, run)
    tables = score_tables(scores, rows[0].policy)
    document = json_text("score", scenario=model.to_dict(), rows=scores.to_list())
    if out is not None:
        _save(out, scores, tables, heading, document)
    if as_json:
        typer.echo(document)
        return
    print_tables(tables, heading)
    jobs, seconds = sum(row.jobs for row in rows), sum(row.seconds for row in rows)
    typer.echo(f"{jobs:,} jobs simulated in {seconds:.3g} s")
    for row in rows:
        for note in notes_on(row):
            typer.echo(f"note: {note}")


def heading_of(model: Scenario, run: Mapping[str, Any]) -> str:
    """What is scored, in one line, with the range of the score, which ends early where the tail is light."""
    from queue_env.report import score_headline
    from queue_env.reward import tail_cost

    seen = run["tail_range"]
    if model.patience is None:
        cost = tail_cost(model, seen)
        seen = cost.t0 / model.sizes.mean, cost.t1 / model.sizes.mean
    return score_headline(model, seen, run["seed"])


def notes_on(row: Score) -> list[str]:
    """What has to be said of a row besides its numbers."""
    wide = f"{row.policy}: the intervals are wider than was asked for"
    return [note for note in ("" if row.reached else wide, row.plain.note) if note]


def _save(out: Path, scores: Scores, tables: Sequence[Table], heading: str, document: str) -> None:
    from queue_env.report import csv_text, markdown, score_figure, tail_figure

    if any(row.estimate is not None for row in scores):
        figure = score_figure(scores, heading.replace("; ", "\n", 1))
    else:  # there is no bound, so the tails themselves
        figure = tail_figure({row.policy: row.plain for row in scores}, heading)
    texts = {
        "score.json": document + "\n",
        "table.csv": csv_text(tables),
        "table.md": "\n".join([f"{heading}\n", *map(markdown, tables)]),
    }
    write_files(out, texts, {"tail.png": figure})
