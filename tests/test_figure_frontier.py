"""The figure of what policies give at two times: its points, what is drawn, and the command."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import pytest
from matplotlib.colors import to_hex
from test_cli import run
from test_figure_tail import quick  # noqa: F401

from queue_env.report import frontier_figure, frontier_table
from queue_env.report.style import line_style
from queue_env.scenarios import scenario
from queue_env.scoring import frontier as frontier_module
from queue_env.scoring.frontier import FrontierPoint, frontier_point
from queue_env.tail import Interval
from tests.scoring.small import short_replications

HIGH = scenario("high-load-2")


def point(policy: str, near: float, far: float, half: float = 0.05) -> FrontierPoint:
    return FrontierPoint(
        policy=policy,
        near=Interval(near, near - half, near + half, 0.95),
        far=Interval(far, far - half, far + half, 0.95),
        reached=True,
    )


POINTS = [point("one", 1.0, 2.0), point("two", 1.5, 1.5), point("three", 1.2, 2.18), point("four", 0.97, 2.1)]


# ---- what is drawn --------------------------------------------------------------------------------


def test_table_is_sorted_by_the_later_time_and_says_who_is_below() -> None:
    table = frontier_table(POINTS, (100.0, 1e4), "the title")
    assert table.columns == ("policy", "R(100)", "R(10000)", "below it at both")
    assert [row[0] for row in table.rows] == ["two", "one", "four", "three"]
    # "four" is lower than "one" at the earlier time, but not by more than the intervals.
    assert [row[3] for row in table.rows] == ["", "", "", "one"]
    assert table.rows[0][1] == POINTS[1].near


def test_figure_has_a_point_with_both_intervals_for_each_policy_and_units() -> None:
    (axes,) = frontier_figure(POINTS, (100.0, 1e4), "the title").axes
    assert axes.get_xlabel() == "P[T > t] / P[S > c t] at t = 100 mean service times"
    assert axes.get_ylabel() == "at t = 10000 mean service times"
    assert axes.get_title(loc="left") == "the title"
    assert len(axes.containers) == len(POINTS)
    for index, (drawn, wanted) in enumerate(zip(axes.containers, POINTS, strict=True)):
        line, _, bars = drawn.lines
        assert (line.get_xdata()[0], line.get_ydata()[0]) == (wanted.near.value, wanted.far.value)
        across, upwards = (bar.get_segments()[0] for bar in bars)
        assert across[:, 0].tolist() == pytest.approx([wanted.near.low, wanted.near.high])
        assert upwards[:, 1].tolist() == pytest.approx([wanted.far.low, wanted.far.high])
        assert to_hex(line.get_color()) == line_style(index)["color"].lower()
    assert [text.get_text() for text in axes.get_legend().get_texts()] == [p.policy for p in POINTS]


def test_an_estimate_below_zero_is_drawn(tmp_path: Path) -> None:
    odd = FrontierPoint(policy="odd", near=Interval(-0.1, 0.0, 0.2, 0.95), far=POINTS[0].far, reached=False)
    frontier_figure([odd, *POINTS], (100.0, 1e4), "").savefig(tmp_path / "frontier.png")


def test_a_point_is_that_of_the_curve(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Any] = []

    def seen(*arguments: Any, **run: Any) -> Any:
        made.append(original(*arguments, **run))
        return made[-1]

    original = frontier_module.tail_curve
    monkeypatch.setattr(frontier_module, "tail_curve", seen)
    with short_replications():
        found = frontier_point("srpt", HIGH, (3.0, 30.0), rel_half_width=0.3, most_jobs=1e6, threads=2, seed=4)
    (curve,) = made
    assert (found.near[:3], found.far[:3]) == tuple(zip(curve.normalised_tail, curve.low, curve.high, strict=True))
    assert (found.policy, found.reached) == ("srpt", curve.reached)
    assert curve.t.tolist() == pytest.approx([3.0 * HIGH.sizes.mean, 30.0 * HIGH.sizes.mean])


# ---- the command ----------------------------------------------------------------------------------


@pytest.mark.usefixtures("quick")
def test_command_prints_a_table_and_writes_figure_and_points(tmp_path: Path) -> None:
    out = tmp_path / "new" / "figure.png"
    result = run(
        *("figure", "frontier", "high-load-2", "--policy", "srpt", "--policy", "dynasplit", "--times", "3", "30"),
        *("--width", "0.9", "--most-jobs", "1e6", "--threads", "2"),
        *("--out", str(out), "--checkpoint", str(tmp_path / "kept")),
    )
    assert result.exit_code == 0, result.stderr
    assert "R(3)" in result.stdout
    assert f"wrote figure.csv, figure.png to {out.parent}\n" in result.stderr
    assert out.read_bytes().startswith(b"\x89PNG")
    rows = {row["policy"]: row for row in csv.DictReader(out.with_suffix(".csv").read_text().splitlines())}
    assert set(rows) == {"srpt", "dynasplit"}
    for row in rows.values():
        for name in ("R(3)", "R(30)"):
            assert float(row[f"{name} low"]) < float(row[name]) < float(row[f"{name} high"])
    assert {path.name for path in (tmp_path / "kept").iterdir()} == {
        "high-load-2_srpt.npz",
        "high-load-2_dynasplit.npz",
    }


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("nowhere", "name must be one of"),
        ("impatient-100", "patience of the scenario must be None"),
        ("high-load-2 --policy sprt", "did you mean 'srpt'?"),
        ("high-load-2 --times 10 10", "times must be two times, the second later than the first, got (10.0, 10.0)"),
        ("high-load-2 --times -1 10", "times must be a finite number > 0, got -1.0"),
        ("light-2 --times 1 1e9", "t_grid must be at most"),
        ("high-load-2 --width 0", "--width must be a finite number > 0"),
        ("high-load-2 --out frontier.pdf", "--out must be a file whose name ends in .png, got 'frontier.pdf'"),
    ],
)
def test_wrong_input_is_one_line_before_any_work(arguments: str, message: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(frontier_module, "tail_curve", lambda *_, **__: pytest.fail("work was done"))
    result = run("figure", "frontier", *arguments.split())
    assert (result.exit_code, result.stdout) == (2, "")
    assert message in result.stderr
    assert result.stderr.count("\n") == 1
