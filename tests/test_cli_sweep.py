"""The command `sweep`, from its arguments to stdout, the exit code and the files."""

from __future__ import annotations

import csv
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from test_cli import run, run_json

import queue_env
from queue_env.cli.ray import with_address
from queue_env.report import sweep_figure, sweep_table
from queue_env.scoring import sweep as sweep_module
from queue_env.tail import Interval

SMALL = ("sweep", "high-load-2", "--jobs", "2000")
TWO = ("--over", "load=0.5:0.9:3", "--over", "servers=2,4", "--policy", "srpt", "--policy", "dynasplit")


def test_table_has_a_row_for_each_point_and_the_ratio() -> None:
    result = run(*SMALL, *TWO)
    assert result.exit_code == 0, result.stderr
    lines = result.stdout.splitlines()
    assert lines[0] == "high-load-2 over load (3 values) and servers (2 values); 2,000 jobs a point, seed 0"
    assert lines[1] == "mean response time [mean service times]"
    assert lines[3].split() == ["load", "servers", "srpt", "dynasplit", "dynasplit", "/", "srpt"]
    assert [line.split()[:2] for line in lines[5:11]] == [[x, n] for x in ("0.5", "0.7", "0.9") for n in ("2", "4")]
    assert all(line.count("±") == 3 for line in lines[5:11])


def test_an_axis_of_one_value() -> None:
    result = run(*SMALL, "--over", "load=0.5", "--policy", "srpt")
    assert result.exit_code == 0, result.stderr
    assert result.stdout.startswith("high-load-2 over load (1 value); 2,000 jobs")


def test_json_is_what_python_gives() -> None:
    document = run_json(*SMALL, *TWO, "--measure", "p99.9", "--seed", "4")
    found = queue_env.sweep(
        "high-load-2",
        ["srpt", "dynasplit"],
        {"load": [0.5, 0.7, 0.9], "servers": [2, 4]},
        measure="quantile:0.999",
        jobs=2000,
        seed=4,
    )
    assert document["rows"] == found.to_list()
    assert (document["measure"], document["axes"]) == ("quantile:0.999", {"load": [0.5, 0.7, 0.9], "servers": [2, 4]})


def test_files(tmp_path: Path) -> None:
    result = run(*SMALL, *TWO, "--out", str(tmp_path / "new" / "out"))
    assert result.exit_code == 0, result.stderr
    out = tmp_path / "new" / "out"
    assert {file.name for file in out.iterdir()} == {
        *("sweep.json", "table.csv", "table.md", "sweep.png", "sweep.svg", "points"),
    }
    assert len(list((out / "points").iterdir())) == 6
    assert (out / "sweep.png").read_bytes()[:4] == b"\x89PNG"
    assert "<svg" in (out / "sweep.svg").read_text()
    rows = list(csv.DictReader((out / "table.csv").read_text().splitlines()))
    document = json.loads((out / "sweep.json").read_text())
    assert [float(row["value"]) for row in rows] == [row["value"] for row in document["rows"]]
    assert [row["policy"] for row in rows[:2]] == ["srpt", "dynasplit"]
    assert "| load | servers | srpt |" in (out / "table.md").read_text()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--over", "load"), "--over must be NAME=LOW:HIGH:COUNT"),
        (("--over", "load=0.5", "--over", "load=0.6"), "--over must name each axis once, got load, load"),
        (("--over", "load=0.5", "--over", "servers=2", "--over", "alpha=2"), "--over must be given once or twice"),
        (("--over", "load=0.5", "--measure", "p100"), "quantity must be one of"),
        (("--over", "load=0.5,1"), "at load=1.0: scenario: load must be < 1"),
        (("--over", "load=0.5", "--width", "0.1"), "--width goes with --measure score, not with mean_response"),
        (("--over", "load=0.5", "--most-jobs", "1e6"), "--most-jobs goes with --measure score"),
        (("--over", "load=0.5", "--measure", "score", "--width", "0"), "--width must be a finite number > 0"),
        (("--over", "load=0.5", "--resume"), "--resume needs --out"),
        (("--over", "load=0.5", "--out", __file__), "--out must be a directory"),
        (("--over", "load=0.5", "--threads", "0"), "--threads must be at least 1"),
        (("--over", "load=0.5", "--jobs", "1.5"), "--jobs must be a whole number"),
        (("--over", "load=0.5", "--policy", "srtp"), "did you mean 'srpt'"),
    ],
)
def test_bad_arguments(arguments: tuple[str, ...], message: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sweep_module, "simulate", lambda *_, **__: pytest.fail("work has begun"))
    result = run("sweep", "high-load-2", *arguments)
    assert result.exit_code == 2
    assert message in result.stderr
    assert result.stderr.count("\n") == 1


def test_points_that_are_there_are_not_used_unasked(tmp_path: Path) -> None:
    assert run(*SMALL, "--over", "load=0.5,0.6", "--out", str(tmp_path)).exit_code == 0
    again = run(*SMALL, "--over", "load=0.5,0.6", "--out", str(tmp_path))
    assert (again.exit_code, "--resume goes on from them" in again.stderr) == (2, True)
    assert run(*SMALL, "--over", "load=0.5,0.6,0.7", "--out", str(tmp_path), "--resume").exit_code == 0
    assert len(list((tmp_path / "points").iterdir())) == 3


def test_an_interrupt_says_what_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = sweep_module.measure_point

    def interrupted(point: Any, *arguments: Any) -> Any:
        if point.scenario.load > 0.6:
            raise KeyboardInterrupt
        return real(point, *arguments)

    monkeypatch.setattr(sweep_module, "measure_point", interrupted)
    result = run(*SMALL, "--over", "load=0.5,0.6,0.7", "--out", str(tmp_path))
    assert result.exit_code == 130
    assert result.stderr == (
        f"interrupted: 2 points are kept in {tmp_path}/points; the same command with --resume goes on from them\n"
    )
    result = run(*SMALL, "--over", "load=0.5,0.6,0.7")
    assert result.stderr == "interrupted: nothing was kept; --out keeps finished points\n"


def start(*arguments: str) -> subprocess.Popen[bytes]:
    """The command in a process of its own."""
    return subprocess.Popen(
        [sys.executable, "-m", "queue_env", *arguments],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parent.parent)},
    )


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_a_killed_sweep_goes_on_and_loses_no_finished_point(number: signal.Signals, tmp_path: Path) -> None:
    arguments = ("sweep", "high-load-2", "--over", "load=0.5:0.9:100", "--jobs", "3e5", "--out", str(tmp_path))
    process = start(*arguments)
    points = tmp_path / "points"
    deadline = time.monotonic() + 60
    while not (points.is_dir() and len(list(points.glob("*.json"))) >= 3) and time.monotonic() < deadline:
        time.sleep(0.02)
    process.send_signal(number)
    _, stderr = process.communicate(timeout=60)
    assert process.returncode == (130 if number == signal.SIGINT else -number), stderr
    finished = {file.name: file.stat().st_mtime_ns for file in points.glob("*.json")}
    assert 3 <= len(finished) < 100
    whole = run_json(*arguments, "--resume")
    assert len(whole["rows"]) == 100
    assert {name: (points / name).stat().st_mtime_ns for name in finished} == finished
    # The last point before and the first after the end are those of a sweep that nothing happened to.
    some = [whole["rows"][k] for k in (len(finished) - 1, len(finished))]
    loads = ",".join(str(row["load"]) for row in some)
    assert run_json("sweep", "high-load-2", "--over", f"load={loads}", "--jobs", "3e5")["rows"] == some


# ---- tables and figures ---------------------------------------------------------------------------


def made(over: dict[str, Any], policies: Any, **options: Any) -> queue_env.Sweep:
    return queue_env.sweep("high-load-2", policies, over, jobs=1000, **options)


def test_cells_of_the_table() -> None:
    found = made({"load": [0.5, 0.6]}, ["srpt", "fcfs"])
    table = sweep_table(found)
    assert table.columns == ("load", "srpt", "fcfs", "fcfs / srpt")
    assert table.rows[1][0] == "0.6"
    assert table.rows[1][1] == found.intervals("srpt")[1]
    assert table.rows[1][3] == found.ratios("fcfs", "srpt")[1]
    assert isinstance(table.rows[1][3], Interval)


def test_lines_over_one_axis() -> None:
    found = made({"load": [0.9, 0.5]}, ["srpt", "fcfs"], measure="quantile:0.99")
    (axes,) = sweep_figure(found, "title").axes
    assert axes.get_xlabel() == "load ρ [1]"
    assert axes.get_ylabel() == "99 % quantile of response time [mean service times]"
    lines = {line.get_label(): line for line in axes.lines}
    assert list(lines["srpt"].get_xdata()) == [0.5, 0.9]
    assert list(lines["srpt"].get_ydata()) == list(found.values("srpt")[::-1])
    assert len(axes.collections) == 2  # bands


def test_words_along_an_axis() -> None:
    (axes,) = sweep_figure(made({"margin": ["log", "power"]}, "dynasplit"), "title").axes
    assert [label.get_text() for label in axes.get_xticklabels()] == ["log", "power"]
    assert axes.get_xlabel() == "margin of the policy"


def test_heat_maps_over_two_axes() -> None:
    found = made({"load": [0.5, 0.6, 0.7], "servers": [2, 4]}, ["srpt", "fcfs"])
    axes = [axes for axes in sweep_figure(found, "title").axes if axes.get_xlabel()]
    assert [one.get_title(loc="left").partition(";")[0] for one in axes] == ["srpt", "fcfs", "fcfs / srpt"]
    assert {(one.get_xlabel(), one.get_ylabel()) for one in axes} == {("load ρ [1]", "number of servers n [1]")}
    assert np.array_equal(axes[0].collections[0].get_array(), found.values("srpt").T)
    assert axes[0].collections[0].norm is axes[1].collections[0].norm
    ratios = np.array([one.value for one in found.ratios("fcfs", "srpt")]).reshape(3, 2)
    assert np.array_equal(axes[2].collections[0].get_array(), ratios.T)
    assert axes[2].collections[0].norm(1.0) == pytest.approx(0.5)
    texts = {text.get_text().strip("()") for text in axes[2].texts}
    assert texts == {f"{ratio:.3g}" for ratio in ratios.ravel()}


def test_one_policy_and_three_have_no_ratio() -> None:
    for policies, count in ((["srpt"], 1), (["srpt", "fcfs", "psjf"], 3)):
        found = made({"load": [0.5, 0.6], "alpha": [1.5, 2.0]}, policies)
        axes = [axes for axes in sweep_figure(found, "title").axes if axes.get_xlabel()]
        assert len(axes) == count
        assert axes[0].get_ylabel() == "index α of the sizes [1]"


def test_a_map_of_numbers_that_are_not_there() -> None:
    found = made({"load": [0.5, 0.6], "alpha": [2.0]}, ["srpt", "fcfs"], measure="tail:1e12")
    axes = [axes for axes in sweep_figure(found, "title").axes if axes.get_xlabel()]
    assert [text.get_text() for text in axes[0].texts] == ["0", "0"]
    assert [text.get_text() for text in axes[2].texts] == ["(nan)", "(nan)"]


# ---- `--ray [ADDRESS]` ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "complete"),
    [
        (["x", "--ray"], ["x", "--ray", "auto"]),
        (["--ray", "high-load-2"], ["--ray", "auto", "high-load-2"]),
        (["x", "--ray", "--jobs", "1"], ["x", "--ray", "auto", "--jobs", "1"]),
        (["x", "--ray", "10.0.0.1:6379"], ["x", "--ray", "10.0.0.1:6379"]),
        (["x", "--ray", "ray://head:10001", "--json"], ["x", "--ray", "ray://head:10001", "--json"]),
        (["x", "--ray", "local"], ["x", "--ray", "local"]),
        (["x", "--ray=local"], ["x", "--ray=local"]),
        (["x"], ["x"]),
    ],
)
def test_an_address_may_be_left_out(given: list[str], complete: list[str]) -> None:
    assert with_address(given) == complete
