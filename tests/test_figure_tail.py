"""The figure of tails: its data from both sources, what is drawn, and the command."""

from __future__ import annotations

import csv
import io
import signal
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from made_scores import made_tail
from test_cli import run

from queue_env.report import joined_tails_csv, joined_tails_figure
from queue_env.scenarios import scenario
from queue_env.scoring.figure_data import JoinedTail, half_decades, joined_tail
from queue_env.simulator import simulate

HIGH = scenario("high-load-2")
TINY = ("--t-max", "100", "--width", "0.9", "--jobs", "5e4", "--most-jobs", "1e6", "--threads", "2")


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Replications of few jobs: what is tested is not their precision."""
    monkeypatch.setattr("queue_env.scoring.curve._WARMUP", 1000)
    monkeypatch.setattr("queue_env.scoring.curve._SEGMENT", 20_000)
    monkeypatch.setattr("queue_env.scoring.curve._SNAPSHOTS", 64)
    monkeypatch.setattr("queue_env.scoring.pilot._JOBS", 1000)


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """Known tails in place of those that take minutes; what was asked for."""
    calls: list[dict[str, Any]] = []

    def tail(policy: str, model: Any, **options: Any) -> JoinedTail:
        calls.append({"policy": policy, "scenario": model.name, **options})
        return made_tail(policy, 1.5)

    monkeypatch.setattr("queue_env.scoring.figure_data.joined_tail", tail)
    return calls


# ---- the data -------------------------------------------------------------------------------------


def test_both_sources_are_estimates_of_one_tail(quick: None) -> None:
    model = HIGH.replace(sizes=HIGH.sizes.scaled(3.0).spec())
    found = joined_tail("srpt", model, t_max=100, rel_half_width=0.9, plain_jobs=100_000, threads=2)
    plain = simulate(model, "srpt", jobs=100_000, seed=0)
    near = found.plain
    assert near.t[0] == pytest.approx(0.1)
    assert plain.events(3 * near.t[-1]) >= 1000 > plain.events(3 * near.t[-1] * 10 ** (2 / 24))
    np.testing.assert_array_equal(near.value, plain.normalised_tail(3 * near.t))
    np.testing.assert_array_equal(near.tail, plain.tail(3 * near.t))
    assert found.decomposition.t[0] <= near.t[-1] < found.decomposition.t[1]
    np.testing.assert_allclose(
        np.log10(found.decomposition.t), np.arange(np.log10(found.decomposition.t[0]), 2.25, 0.5)
    )
    np.testing.assert_array_equal(found.beyond.t, found.decomposition.t[1:])
    assert np.all(found.decomposition.low < found.decomposition.high)
    # Where both see, they agree.
    at = found.decomposition.t[0]
    assert found.decomposition.value[0] == pytest.approx(plain.normalised_tail(3 * at), rel=0.25)


def test_a_tail_that_has_run_away_is_not_followed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("queue_env.scoring.figure_data.tail_curve", lambda *_, **__: pytest.fail("work was done"))
    monkeypatch.setattr("queue_env.scoring.figure_data.RUN_AWAY", 10.0)
    found = joined_tail("fcfs", HIGH, t_max=1e6, plain_jobs=100_000, threads=2)
    assert found.plain.value[-1] > 10
    assert found.plain.t[-1] < 1e6
    assert (found.reached, len(found.decomposition.t)) == (True, 0)


def test_what_a_plain_run_has_seen_takes_no_decomposition(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("queue_env.scoring.figure_data.tail_curve", lambda *_, **__: pytest.fail("work was done"))
    found = joined_tail("split", HIGH, t_max=10, plain_jobs=100_000, threads=2)
    assert (found.policy, found.reached) == ("split", True)
    assert found.plain.t[-1] == pytest.approx(10)
    assert len(found.decomposition.t) == len(found.beyond.t) == 0
    (axes,) = joined_tails_figure({"": [found, made_tail("srpt", 1.0)]}).axes
    assert len(axes.lines[0].get_xdata()) == len(found.plain.t)


def test_half_decades_end_where_the_bound_has_fallen_far() -> None:
    np.testing.assert_allclose(half_decades(HIGH, 1e4), 10 ** np.arange(0, 4.25, 0.5))
    light = half_decades(scenario("light-2"), 1e6)
    assert light[-1] == pytest.approx(10**1.5)
    for t_max in (0.5, -1.0, float("nan")):
        with pytest.raises(ValueError, match="tail figure: t_max"):
            half_decades(HIGH, t_max)


# ---- what is drawn --------------------------------------------------------------------------------


def labels(axes: Any) -> list[str]:
    return [text.get_text() for text in axes.get_legend().get_texts()]


def test_panel_has_lines_then_points_with_bands() -> None:
    tail = made_tail("srpt", 1.5, 0.01)
    figure = joined_tails_figure({"one": [tail, made_tail("ps", 1.2)], "two": [tail]})
    assert [axes.get_title(loc="left") for axes in figure.axes] == ["one", "two"]
    axes = figure.axes[0]
    assert (axes.get_xscale(), axes.get_xlabel()) == ("log", "response time t [mean service times]")
    assert axes.get_ylabel() == "R(t) = P[T > t] / P[S > c t] [1]"
    assert labels(axes) == ["srpt", "ps", "P[S > c t]"]
    near, far = axes.lines[:2]
    np.testing.assert_array_equal(near.get_xdata(), tail.plain.t)
    np.testing.assert_array_equal(near.get_ydata(), tail.plain.value)
    # From the last point of the line on, without a mark there.
    np.testing.assert_array_equal(far.get_xdata(), [tail.plain.t[-1], *tail.beyond.t])
    assert far.get_markevery() == [1, 2, 3, 4]
    assert near.get_color() == far.get_color() != axes.lines[2].get_color()
    assert len(axes.collections) == 4
    ends = axes.collections[1].get_paths()[0].vertices
    for point in zip(tail.beyond.t, tail.beyond.high, strict=True):
        assert np.isclose(ends, point).all(axis=1).any()


def test_curve_that_rises_far_leaves_the_frame_and_the_legend_says_so() -> None:
    (axes,) = joined_tails_figure({"": [made_tail("srpt", 1.5), made_tail("thresh-split", 1.0, 0.5)]}).axes
    bottom, top = axes.get_ylim()
    assert bottom < 0.4
    assert 1.65 <= top < 2.5
    assert labels(axes)[1] == "thresh-split (leaves the frame: 100 at t = 1e+04)"


def test_band_ends_where_the_line_leaves_the_frame() -> None:
    (axes,) = joined_tails_figure({"": [made_tail("srpt", 1.5), made_tail("thresh-split", 1.0, 0.5)]}).axes
    *_, near, far = axes.collections
    assert 2.7 < near.get_paths()[0].vertices[:, 0].max() < 3.5
    assert far.get_paths() == []


def test_frame_holds_the_lowest_curve_where_all_rise_far() -> None:
    (axes,) = joined_tails_figure({"": [made_tail("split", 1.0, 0.5), made_tail("fcfs", 2.0, 0.5)]}).axes
    assert 100 < axes.get_ylim()[1] < 200
    assert [label.partition(" ")[2] for label in labels(axes)[:2]] == ["", "(leaves the frame: 200 at t = 1e+04)"]


def test_csv_has_all_points_of_both_sources() -> None:
    tail = made_tail("srpt", 1.5)
    rows = list(csv.DictReader(io.StringIO(joined_tails_csv({"high-load-2": [tail]}))))
    assert len(rows) == len(tail.plain.t) + len(tail.decomposition.t)
    last = rows[-1]
    assert (last["scenario"], last["policy"], last["source"]) == ("high-load-2", "srpt", "decomposition")
    assert [float(last[name]) for name in ("t", "R", "low", "high")] == pytest.approx([1e4, 1.5, 1.35, 1.65])
    assert rows[0]["source"] == "plain run"


# ---- the command ----------------------------------------------------------------------------------


def test_command_writes_figure_and_points(quick: None, tmp_path: Path) -> None:
    out = tmp_path / "new" / "figure.png"
    result = run(
        *("figure", "tail", "--scenario", "light-2", "--scenario", "high-load-2", "--policy", "srpt", *TINY),
        *("--out", str(out), "--checkpoint", str(tmp_path / "kept")),
    )
    assert result.exit_code == 0, result.stderr
    assert result.stdout == ""
    assert f"wrote figure.csv, figure.png to {out.parent}\n" in result.stderr
    assert out.read_bytes().startswith(b"\x89PNG")
    rows = list(csv.DictReader(out.with_suffix(".csv").read_text().splitlines()))
    last = {(row["scenario"], row["source"]): float(row["t"]) for row in rows}
    assert last[("light-2", "decomposition")] == pytest.approx(10**1.5)
    assert last[("high-load-2", "decomposition")] == pytest.approx(100)
    assert last[("high-load-2", "plain run")] < 100
    assert all(float(row["low"]) <= float(row["R"]) <= float(row["high"]) for row in rows)
    names = {path.name for path in (tmp_path / "kept").iterdir()}
    assert names == {"light-2_srpt.npz", "high-load-2_srpt.npz"}


def test_command_asks_for_the_figure_of_the_paper_by_default(asked: list[dict[str, Any]], tmp_path: Path) -> None:
    result = run("figure", "tail", "--out", str(tmp_path / "tail.png"))
    assert result.exit_code == 0, result.stderr
    margins = ["dynasplit", "dynasplit:margin=power", "dynasplit:margin=constant"]
    policies = ["srpt", "split", "thresh-split", *margins, "backlog-split", "super-server"]
    assert [(call["scenario"], call["policy"]) for call in asked] == [
        (name, policy) for name in ("high-load-2", "high-load-4") for policy in policies
    ]
    assert {key: asked[0][key] for key in ("t_max", "rel_half_width", "plain_jobs", "seed")} == {
        "t_max": 1e6,
        "rel_half_width": 0.1,
        "plain_jobs": 10_000_000,
        "seed": 0,
    }


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("--scenario nowhere", "scenario: name must be one of"),
        ("--scenario impatient-100", "--scenario must be one without patience, whose tail has a bound"),
        ("--policy sprt", "did you mean 'srpt'?"),
        ("--policy srpt --policy loss-priority", "loss-priority"),
        ("--t-max 0.5", "t_max must be at least 1 mean service time"),
        ("--t-max -1", "--t-max must be a finite number > 0"),
        ("--width 0", "--width must be a finite number > 0"),
        ("--jobs 0", "--jobs must be a whole number >= 1"),
        ("--out tail.pdf", "--out must be a file whose name ends in .png, got 'tail.pdf'"),
    ],
)
def test_wrong_input_is_one_line_before_any_work(arguments: str, message: str, asked: list[dict[str, Any]]) -> None:
    result = run("figure", "tail", *arguments.split())
    assert (result.exit_code, result.stdout) == (2, "")
    assert message in result.stderr
    assert result.stderr.count("\n") == 1
    assert asked == []


def test_interrupt_draws_nothing_and_says_where_to_go_on(
    asked: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def swallowing(policy: str, model: Any, **_: Any) -> JoinedTail:
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
        return made_tail(policy, 1.0, reached=False)

    monkeypatch.setattr("queue_env.scoring.figure_data.joined_tail", swallowing)
    out = tmp_path / "tail.png"
    result = run("figure", "tail", "--out", str(out), "--checkpoint", str(tmp_path))
    assert (result.exit_code, result.stdout) == (130, "")
    assert result.stderr == (f"interrupted: no figure was drawn; the same command goes on from what is in {tmp_path}\n")
    assert not out.exists()


def test_an_interrupted_plain_run_is_followed_by_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: Any, **__: Any) -> Any:
        return replace(simulate(HIGH, "srpt", jobs=1000), interrupted=True)

    monkeypatch.setattr("queue_env.scoring.figure_data.plain_run", interrupted)
    monkeypatch.setattr("queue_env.scoring.figure_data.tail_curve", lambda *_, **__: pytest.fail("work was done"))
    result = run("figure", "tail", "--scenario", "high-load-2", "--policy", "srpt", *TINY)
    assert (result.exit_code, result.stdout) == (130, "")
    assert result.stderr == "interrupted: no figure was drawn\n"


def test_precision_that_was_not_reached_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(
        "queue_env.scoring.figure_data.joined_tail", lambda policy, *_, **__: made_tail(policy, 1.0, reached=False)
    )
    result = run("figure", "tail", "--scenario", "light-2", "--policy", "srpt", "--out", str(tmp_path / "tail.png"))
    assert result.exit_code == 0
    assert result.stderr.startswith("note: light-2, srpt: the intervals are wider than was asked for\n")
