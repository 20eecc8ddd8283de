"""The command `score`, from its arguments to stdout, stderr, the exit code and the files."""

from __future__ import annotations

import csv
import json
import signal
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from made_scores import made_score
from test_cli import run, run_json

from queue_env import __version__
from queue_env.cli.inputs import checkpoint_file
from queue_env.report import score_figure, score_tables
from queue_env.rules import POLICIES
from queue_env.scenarios import scenario
from queue_env.scoring.score import Scores
from queue_env.tail import Interval

HIGH = scenario("high-load-2")
VALUES = {"fcfs": 3.0, "srpt": 1.0, "split": 2.0, "dynasplit": 0.9}


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """Scores of known values in place of those that take minutes; what was asked for."""
    calls: list[dict[str, Any]] = []

    def score(policy: Any, source: Any, **options: Any) -> Any:
        calls.append({"policy": policy, "source": source, **options})
        return made_score(str(getattr(policy, "name", policy)), VALUES.get(policy, 5.0), source)

    monkeypatch.setattr("queue_env.scoring.score.score", score)
    return calls


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Replications of few jobs: what is tested is not their precision."""
    monkeypatch.setattr("queue_env.scoring.curve._WARMUP", 1000)
    monkeypatch.setattr("queue_env.scoring.curve._SEGMENT", 20_000)
    monkeypatch.setattr("queue_env.scoring.curve._SNAPSHOTS", 64)


# ---- what is printed and written ------------------------------------------------------------------


def test_rows_have_what_a_scoreboard_needs(quick: None) -> None:
    document = run_json(
        *("score", "high-load-2", "--policy", "srpt", "--policy", "fcfs", "--range", "1", "10", "--width", "0.9"),
        *("--jobs", "2e4", "--seed", "3", "--threads", "1"),
    )
    assert set(document) == {"command", "version", "scenario", "rows"}
    assert document["scenario"] == HIGH.to_dict()
    rows = document["rows"]
    assert {row["policy"] for row in rows} == {"srpt", "fcfs"}
    for row in rows:
        assert (row["scenario"], row["seed"], row["version"]) == ("high-load-2", 3, __version__)
        assert 0 < row["score_low"] < row["score"] < row["score_high"]
        assert [point["t"] for point in row["normalised_tail"]] == [1, 10]
        for point in row["normalised_tail"]:
            assert set(point) == {"t", "value", "low", "high"}
            assert point["low"] < point["value"] < point["high"]
        assert row["mean_response"] > 1
        assert row["mean_slowdown"] > 1
        assert set(row["quantiles"]) == {"0.5", "0.9", "0.99", "0.999", "0.9999"}
        assert row["jobs"] > 20_000
        assert row["seconds"] > 0


def test_options_reach_the_scores(asked: list[dict[str, Any]], tmp_path: Path) -> None:
    run_json(
        *("score", "high-load-2", "--policy", "srpt", "--policy", "dynasplit:shape=3", "--policy", "srpt"),
        *("--servers", "3", "--load", "0.7", "--set", 'sizes={"law":"lomax","alpha":2,"mean":2}'),
        *("--range", "2", "300"),
        *("--width", "0.1", "--jobs", "1e5", "--most-jobs", "1e8", "--seed", "7", "--threads", "1"),
        *("--checkpoint", str(tmp_path / "new" / "kept")),
    )
    assert [call["policy"] for call in asked] == ["srpt", "dynasplit:shape=3"]
    assert asked[0] == {
        "policy": "srpt",
        "source": scenario("high-load-2", servers=3, load=0.7, sizes={"law": "lomax", "alpha": 2, "mean": 2}),
        "tail_range": (2.0, 300.0),
        "rel_half_width": 0.1,
        "plain_jobs": 100_000,
        "most_jobs": 100_000_000,
        "seed": 7,
        "threads": 1,
        "ray": None,
        "checkpoint": tmp_path / "new" / "kept" / "srpt.npz",
    }
    assert (tmp_path / "new" / "kept").is_dir()


def test_policies_by_default_and_all_that_can_run(asked: list[dict[str, Any]]) -> None:
    run_json("score", "high-load-2")
    assert [call["policy"] for call in asked] == ["fcfs", "srpt", "split", "dynasplit"]
    asked.clear()
    run_json("score", "high-load-2", "--policy", "ps", "--policy", "all")
    assert asked[0]["policy"] == "ps"
    assert sorted(call["policy"] for call in asked) == sorted(set(POLICIES) - {"loss-priority", "two-class"})


def test_overload_has_no_policies_without_a_steady_state(asked: list[dict[str, Any]]) -> None:
    run_json("score", "impatient-100")
    assert [call["policy"] for call in asked] == ["fcfs", "srpt", "split"]


def test_tables_have_scores_and_differences_to_the_first(asked: list[dict[str, Any]]) -> None:
    result = run("score", "high-load-2")
    assert result.exit_code == 0, result.stderr
    lines = result.stdout.splitlines()
    assert lines[0] == (
        "high-load-2: 2 servers, load 0.8, sizes pareto alpha=1.5 minimum=0.3333, c = min(1, spare) = 0.4; "
        "tail score over 1 to 10000 mean service times; seed 0"
    )
    words = [
        "policy",
        "score",
        "R(1)",
        "R(10)",
        "R(100)",
        "mean",
        "response",
        "mean",
        "slowdown",
        "p99.9",
        "P(beats",
        "best)",
    ]
    assert words in [line.split() for line in lines]
    assert "Difference of the tail score to fcfs" in result.stdout
    first_words = [line.split()[0] for line in lines if line.startswith("  ")]
    # Best first; fcfs is in no difference, for the others are less that.
    assert [w for w in first_words if w in VALUES] == [*sorted(VALUES, key=VALUES.get), "dynasplit", "srpt", "split"]  # type: ignore[arg-type]


def test_cells_of_the_tables() -> None:
    scores = Scores([made_score(policy, value) for policy, value in VALUES.items()])
    table, differences = score_tables(scores, "srpt")
    best = scores[0]
    assert best.policy == "dynasplit"
    row = dict(zip(table.columns, table.rows[0], strict=True))
    assert row["score"] == Interval(best.score, best.low, best.high, 0.95)
    assert row["R(100)"] == Interval(best.normalised_tail[2], best.tail_low[2], best.tail_high[2], 0.95)
    assert row["mean response"] == best.plain.interval("mean_response")
    assert row["p99.9"] == best.plain.quantile(0.999)
    assert row["P(beats best)"] is None
    assert [line[-1] for line in table.rows[1:]] == [
        scores.difference(policy, "dynasplit")[3] for policy in ("srpt", "split", "fcfs")
    ]
    value, low, high, better = scores.difference("fcfs", "srpt")
    assert value == pytest.approx(2.0)
    assert differences.rows[-1] == ("fcfs", Interval(value, low, high, 0.95), better)


def test_patience_leaves_the_tail_score_out(asked: list[dict[str, Any]], tmp_path: Path) -> None:
    result = run("score", "impatient-100", "--policy", "fcfs", "--policy", "srpt", "--json", "--out", str(tmp_path))
    assert result.exit_code == 0, result.stderr
    assert [row["score"] for row in json.loads(result.stdout)["rows"]] == [None, None]
    assert (tmp_path / "tail.png").read_bytes().startswith(b"\x89PNG")


def test_files_are_written_as_a_whole(asked: list[dict[str, Any]], tmp_path: Path) -> None:
    out = tmp_path / "new" / "results"
    result = run("score", "high-load-2", "--out", str(out), "--json")
    assert result.exit_code == 0, result.stderr
    assert {path.name for path in out.iterdir()} == {"score.json", "table.csv", "table.md", "tail.png"}
    assert result.stderr == f"wrote score.json, table.csv, table.md, tail.png to {out}\n"
    assert (out / "score.json").read_text() == result.stdout
    rows = {row["policy"]: row for row in csv.DictReader((out / "table.csv").read_text().splitlines())}
    document = {row["policy"]: row for row in json.loads(result.stdout)["rows"]}
    for policy, row in rows.items():
        assert float(row["score low"]) == document[policy]["score_low"]
        assert float(row["R(10)"]) == document[policy]["normalised_tail"][1]["value"]
    assert rows["fcfs"]["difference score"] == ""
    assert float(rows["srpt"]["difference score"]) == pytest.approx(-2.0)
    assert (out / "table.md").read_text().startswith("high-load-2: 2 servers")
    assert (out / "tail.png").read_bytes().startswith(b"\x89PNG")


def test_figure_has_a_curve_and_a_band_for_each_policy_and_units() -> None:
    scores = Scores([made_score(policy, value) for policy, value in VALUES.items()])
    (axes,) = score_figure(scores, "the title").axes
    assert axes.get_xlabel() == "response time t [mean service times]"
    assert axes.get_ylabel() == "R(t) = P[T > t] / P[S > c t] [1]"
    assert (axes.get_xscale(), axes.get_title(loc="left")) == ("log", "the title")
    legend = axes.get_legend()
    assert legend is not None
    *labels, leaving, bound = [text.get_text() for text in legend.get_texts()]
    assert (labels, bound) == (["dynasplit", "srpt", "split"], "P[S > c t]")
    assert leaving == "fcfs (leaves the frame: 6 at t = 100)"
    assert 4 < axes.get_ylim()[1] < 6
    assert len(axes.collections) == len(VALUES)  # bands
    line = next(line for line in axes.lines if line.get_label() == "srpt")
    assert list(line.get_xdata()) == [1, 10, 100]
    assert list(line.get_ydata()) == pytest.approx([0.5, 1, 2])


def test_checkpoints_have_a_file_for_each_policy(quick: None, tmp_path: Path) -> None:
    arguments = ("score", "high-load-2", "--policy", "srpt", "--policy", "dynasplit:shape=3", "--range", "1", "10")
    arguments += ("--width", "0.9", "--jobs", "2e4", "--checkpoint", str(tmp_path / "kept"))
    first, second = run_json(*arguments), run_json(*arguments)
    assert {path.name for path in (tmp_path / "kept").iterdir()} == {"srpt.npz", "dynasplit%3Ashape=3.npz"}
    for document in (first, second):
        for row in document["rows"]:
            row.pop("seconds")
    assert first == second
    other = run(*arguments, "--seed", "1")
    assert other.exit_code == 2
    assert "checkpoint" in other.stderr


def test_checkpoint_files_of_different_labels_differ(tmp_path: Path) -> None:
    labels = ["srpt", "a:b", "a_b", "a b", "a/b", "ps", "../ps"]
    files = [checkpoint_file(tmp_path, label) for label in labels]
    assert len(set(files)) == len(labels)
    assert {file.parent for file in files if file is not None} == {tmp_path}
    assert checkpoint_file(None, "srpt") is None


def test_precision_that_was_not_reached_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "queue_env.scoring.score.score", lambda policy, source, **_: made_score(policy, 1.0, source, reached=False)
    )
    result = run("score", "high-load-2", "--policy", "srpt")
    assert result.stdout.endswith("note: srpt: the intervals are wider than was asked for\n")


# ---- what goes wrong ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("high-load-3", "scenario: name must be one of"),
        ("high-load-2 --policy sprt", "did you mean 'srpt'?"),
        ("high-load-2 --policy nowhere:agent", "policy='nowhere:agent': there is no module 'nowhere'"),
        ("high-load-2 --policy nowhere.zip", "policy='nowhere.zip': there is no file 'nowhere.zip'"),
        ("high-load-2 --policy srpt --policy thresh-split:d=0.34", "score: policy must be one under which"),
        ("impatient-100 --policy srpt --policy dynasplit", "dynasplit"),
        ("impatient-100 --policy srpt --policy ps", "score: policy must be one under which the system is stable"),
        ("high-load-2 --policy loss-priority", "loss-priority"),
        ("high-load-2 --range 10 1", "--range must be two times, 0 < T0 < T1 [mean service times], got 10 1"),
        ("light-2 --range 1000 10000", "tail_range[0]"),
        ("high-load-2 --width 0", "--width must be a finite number > 0, got 0.0"),
        ("high-load-2 --jobs 1.5", "--jobs must be a whole number >= 1"),
        ("high-load-2 --most-jobs many", "--most-jobs must be a whole number >= 1"),
        ("high-load-2 --threads 0", "--threads must be at least 1, got 0"),
        ("high-load-2 --seed -1", "--seed must be at least 0, got -1"),
        ('light-2 --set sizes={"law":"deterministic","value":1}', "a law without atoms"),
    ],
)
def test_wrong_input_is_one_line_before_any_work(
    arguments: str, message: str, asked: list[dict[str, Any]], tmp_path: Path
) -> None:
    result = run("score", *arguments.split(), "--checkpoint", str(tmp_path / "kept"))
    assert result.exit_code == 2
    assert result.stdout == ""
    assert result.stderr.startswith("error: ")
    assert message in result.stderr
    assert result.stderr.count("\n") == 1
    assert asked == []
    assert not (tmp_path / "kept").exists()


def test_directories_that_are_files_are_refused(asked: list[dict[str, Any]], tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for option in ("--out", "--checkpoint"):
        result = run("score", "light-2", option, str(tmp_path / "file"))
        assert result.exit_code == 2
        assert f"{option} must be a directory" in result.stderr
    assert asked == []


def failing(at: str, failure: Callable[[], None]) -> Callable[..., Any]:
    def score(policy: str, source: Any, **_: Any) -> Any:
        if policy == at:
            failure()
        return made_score(policy, VALUES[policy], source)

    return score


def interrupted() -> None:
    raise KeyboardInterrupt


def interrupted_but_swallowed() -> None:
    with pytest.raises(KeyboardInterrupt):
        signal.raise_signal(signal.SIGINT)


@pytest.mark.parametrize(
    ("failure", "rows"), [(interrupted, ["srpt", "fcfs"]), (interrupted_but_swallowed, ["srpt", "split", "fcfs"])]
)
def test_interrupt_keeps_the_finished_rows(
    failure: Callable[[], None], rows: list[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("queue_env.scoring.score.score", failing("split", failure))
    before = signal.getsignal(signal.SIGINT)
    result = run("score", "high-load-2", "--json", "--checkpoint", str(tmp_path), "--out", str(tmp_path / "out"))
    assert signal.getsignal(signal.SIGINT) is before
    assert result.exit_code == 130
    assert [row["policy"] for row in json.loads(result.stdout)["rows"]] == rows
    assert result.stderr.endswith(
        f"interrupted: kept {len(rows)} of 4 policies; the same command goes on from what is in {tmp_path}\n"
    )
    assert (tmp_path / "out" / "score.json").read_text() == result.stdout


def test_interrupt_before_anything_is_finished(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("queue_env.scoring.score.score", failing("fcfs", interrupted))
    result = run("score", "high-load-2")
    assert (result.exit_code, result.stdout) == (130, "")
    assert result.stderr == "interrupted: no policy was finished\n"


def test_error_of_a_run_keeps_the_finished_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    def unstable() -> None:
        raise ValueError("blocks do not end")

    monkeypatch.setattr("queue_env.scoring.score.score", failing("split", unstable))
    result = run("score", "high-load-2", "--json")
    assert result.exit_code == 2
    assert [row["policy"] for row in json.loads(result.stdout)["rows"]] == ["srpt", "fcfs"]
    assert result.stderr == "error: blocks do not end\n"


@pytest.mark.parametrize("command", ["score", "figure tail", "figure frontier"])
def test_help_loads_no_slow_library(command: str) -> None:
    code = f"""
        import sys
        from queue_env.cli import main
        sys.argv = ['queue-env', *'{command} --help'.split()]
        try:
            main()
        finally:
            slow = {{'numba', 'numpy', 'scipy', 'matplotlib', 'gymnasium', 'pyarrow'}} & set(sys.modules)
            print(sorted(slow), file=sys.stderr)
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, check=True)
    assert f"Example: queue-env {command}" in done.stdout
    assert done.stderr == "[]\n"
