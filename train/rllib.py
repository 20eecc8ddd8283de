"""``python -m train.rllib``: learn the anchor's rate by RLlib's PPO, search its settings by Ray Tune, and score it."""

from __future__ import annotations

import csv
import io
import json
import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from queue_env.cli import options
from queue_env.cli.errors import reporting_errors
from queue_env.cli.inputs import check_positive, check_seed, check_writable, named_scenario, parse_count
from queue_env.cli.output import json_text, print_tables
from queue_env.cli.ray import WithRay
from train.bar import search_bar

if TYPE_CHECKING:
    from queue_env.network import Network
    from queue_env.report import Table
    from queue_env.scoring.score import Scores
    from train.rllib_ppo import PPOSettings
    from train.rllib_tune import Trial

__all__ = ["app", "main"]

REFERENCE = "srpt"
POLICY, CHECKPOINT, CURVE, RESULT, SETTINGS = "policy.json", "checkpoint", "curve.csv", "result.json", "settings.json"
_FRESH = 104_729  # added to the seed, for jobs that had no part in the training


@reporting_errors
def main(
    out: Annotated[
        Path, typer.Option(metavar="DIRECTORY", help="Where to write policy.json, curve.csv and result.json.")
    ],
    name: Annotated[str, typer.Option("--scenario", metavar="SCENARIO", help="A named scenario.")] = "high-load-2",
    steps: Annotated[
        str, typer.Option(metavar="COUNT", help="Decisions of a training, in iterations of 8192.")
    ] = "5e5",
    trials: Annotated[
        int | None,
        typer.Option("--tune", metavar="TRIALS", help="Search PPO's settings by so many trainings, each on one core."),
    ] = None,
    seed: options.Seed = 0,
    width: options.Width = 0.05,
    most_jobs: options.MostJobs = "2e8",
    ray: options.Ray = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with what is kept in --out.")] = False,
    as_json: options.Json = False,
) -> None:
    """Learn the anchor's rate on a scenario by RLlib's PPO, on big-job episodes, and score it beside srpt.

    The policy is a network of the kernel: `queue-env score SCENARIO --policy learned:DIRECTORY/policy.json` scores it,
    too.

    Example: python -m train.rllib --scenario high-load-2 --steps 1e6 --out rllib
    """
    checked: dict[str, Any] = {"steps": parse_count("--steps", steps), "seed": check_seed(seed)}
    judged = {"rel_half_width": check_positive("--width", width), "most_jobs": parse_count("--most-jobs", most_jobs)}
    if trials is not None and trials < 1:
        raise ValueError(f"--tune must be at least 1, got {trials}")
    check_writable("--out", out)
    _check_scenario(name)
    _check_rllib()
    from queue_env.scoring.executors import cluster
    from train.rllib_ppo import PPOSettings

    settings = PPOSettings(scenario=name, **checked)
    _begin(out, settings.plain() | {"trials": trials}, resume)
    found: list[Trial] = []
    with cluster(ray or "local"):
        if trials is None:
            network = _learn(settings, out)
        else:
            found = _search(settings, trials, out, resume)
            settings = replace(settings, **found[0].settings)
            network = _read(found[0].file)
    from queue_env.network import write_network

    write_network(out / POLICY, network, settings.plain() | {"scenarios": [name], "by": "RLlib's PPO"})
    _report(settings, out, found, judged, as_json)


def _check_scenario(name: str) -> None:
    from train.objective import make_objective

    make_objective(named_scenario(name, {}, ()))


def _check_rllib() -> None:
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # read at import
    try:
        import ray.rllib
        import ray.tune  # noqa: F401
    except ImportError as error:
        allowed = "a virtual environment of its own with ray[rllib] and PyTorch; see docs/tooling.md"
        raise ImportError(f"train.rllib needs RLlib ({error}): {allowed}") from error


def _begin(out: Path, asked: dict[str, Any], resume: bool) -> None:
    """Write the settings down, and refuse to mix what is in the directory with something else."""
    file = out / SETTINGS
    if file.exists():
        if not resume:
            raise ValueError(f"--out has a training in {out}: --resume goes on with it, or name another directory")
        kept = json.loads(file.read_text(encoding="utf-8"))
        for key, value in json.loads(json.dumps(asked)).items():
            if kept.get(key) != value:
                raise ValueError(f"--resume: {out} has a training with {key}={kept.get(key)}, got {value}")
    out.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(asked, indent=1) + "\n", encoding="utf-8")


def _learn(settings: PPOSettings, out: Path) -> Network:
    from train.rllib_ppo import learn

    rows: list[tuple[int, float]] = _kept_rows(out / CURVE)
    with search_bar(-(-settings.steps // settings.batch), "RLlib's PPO") as bar:
        for _ in rows:
            bar.advance()

        def after(done: int, mean_return: float) -> None:
            rows.append((done, mean_return))
            _write_curve(out / CURVE, rows)
            bar.advance()

        try:
            return learn(settings, out / CHECKPOINT, after)
        except KeyboardInterrupt:
            raise KeyboardInterrupt(f"{len(rows)} iterations are kept in {out}; --resume goes on from there") from None


def _kept_rows(file: Path) -> list[tuple[int, float]]:
    if not file.exists():
        return []
    with file.open(encoding="utf-8") as text:
        return [(int(row["steps"]), float(row["mean_return"])) for row in csv.DictReader(text)]


def _write_curve(file: Path, rows: Sequence[tuple[int, float]]) -> None:
    from queue_env.report import atomic_file

    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerows([("steps", "mean_return"), *rows])
    with atomic_file(file) as handle:
        handle.write(text.getvalue().encode())


def _search(settings: PPOSettings, trials: int, out: Path, resume: bool) -> list[Trial]:
    from train.rllib_tune import search

    with search_bar(trials, "Ray Tune") as bar:
        return search(settings, trials, out, resume=resume, done=bar.advance)


def _read(file: Path) -> Network:
    from queue_env.network import read_network

    return read_network(file)[0]


# ---- what is said of it --------------------------------------------------------------------------


def _report(settings: PPOSettings, out: Path, found: Sequence[Trial], judged: dict[str, Any], as_json: bool) -> None:
    """Score the policy on fresh jobs, beside the reference, and print and keep that."""
    from queue_env.report import atomic_file, score_tables
    from queue_env.scoring.score import score_all

    learned = f"learned:{out / POLICY}"
    scores: Scores = score_all(
        [REFERENCE, learned], settings.scenario, seed=settings.seed + _FRESH, plain_jobs=1_000_000, **judged
    )
    rows = [trial._asdict() | {"file": str(trial.file)} for trial in found]
    document = json_text("train.rllib", settings=settings.plain(), trials=rows, rows=scores.to_list())
    with atomic_file(out / RESULT) as file:
        file.write(f"{document}\n".encode())
    if as_json:
        typer.echo(document)
    else:
        print_tables(
            [*_trial_tables(found), *score_tables(scores, REFERENCE)],
            f"{settings.scenario}, {settings.steps:,} decisions",
        )


def _trial_tables(found: Sequence[Trial]) -> list[Table]:
    from queue_env.report import Table

    if not found:
        return []
    names = list(found[0].settings)
    rows = tuple((trial.file.stem, trial.score, *(trial.settings[name] for name in names)) for trial in found)
    return [Table("Trials, best first", ("trial", "tail score", *names), rows)]


app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
app.command(cls=WithRay)(main)

if __name__ == "__main__":
    app(prog_name="python -m train.rllib")
