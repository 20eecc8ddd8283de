"""The figures of many impatient servers: their data, what is drawn, and the commands."""

from __future__ import annotations

import csv
import json
import math
import signal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from test_cli import run

from queue_env import theory
from queue_env.comparison import Comparison
from queue_env.distributions import law
from queue_env.report import crossing_csv, crossing_figure, crossing_table, curves_figure, sizes_figure
from queue_env.scenarios import scenario
from queue_env.scoring import impatient_crossing as crossing_module
from queue_env.scoring.impatient_crossing import Crossing, CrossingData, impatient_crossing
from queue_env.scoring.impatient_curves import FIGURES, impatient_curves
from queue_env.scoring.impatient_runs import STREAMS, Runs, exponential, weibull
from queue_env.scoring.impatient_sizes import served_by_size
from queue_env.simulator import simulate
from queue_env.tail import Interval

TINY = Runs(servers=(5, 2), jobs=400, threads=2, progress=False)
FEW = ("--servers", "2", "--servers", "5", "--jobs", "400", "--threads", "2")


@pytest.fixture
def simulated(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the systems that are simulated."""
    names: list[str] = []

    def counted(model: Any, *arguments: Any, **options: Any) -> Comparison:
        names.append(model.name)
        found: Comparison = simulate(model, *arguments, **options)
        return found

    monkeypatch.setattr("queue_env.scoring.impatient_runs.simulate", counted)
    return names


# ---- the data -------------------------------------------------------------------------------------


def test_points_are_those_of_plain_runs_and_have_the_limit_beside_them() -> None:
    panels = impatient_curves("impatient-waiting", TINY)
    assert [data.panel.name for data in panels] == ["weibull-patience", "pareto-patience"]
    data = panels[0]
    assert len(data.points) == 2 * 3 * len(data.panel.simulated)
    model = scenario({"servers": 5, "load": 1.4, "sizes": exponential().spec(), "patience": weibull(0.6).spec()})
    expected = simulate(model, ["fcfs", "lcfs", "srpt"], jobs=400, streams=STREAMS, warmup=700, progress=False)
    for policy, result in expected.items():
        (point,) = [p for p in data.points if (p.policy, p.servers, p.shape) == (policy, 5, 0.6)]
        assert point.found == result.interval("mean_waiting")
    limits = {point.policy: point.limit for point in data.points if point.shape == 0.6}
    assert limits["fcfs"] == theory.fcfs_limit(1.4, weibull(0.6)).mean_waiting
    assert limits["lcfs"] == pytest.approx(1 - 1 / 1.4)
    assert limits["srpt"] == theory.srpt_limit(1.4, exponential(), weibull(0.6)).mean_waiting


def test_throughput_is_the_share_of_jobs_that_are_served() -> None:
    data = impatient_curves("impatient-throughput", TINY)[0]
    model = scenario({"servers": 2, "load": 1.4, "sizes": weibull(2.0).spec(), "patience": weibull(0.4).spec()})
    result = simulate(model, "srpt", jobs=400, streams=STREAMS, warmup=280, progress=False)
    (point,) = [p for p in data.points if (p.policy, p.servers, p.shape) == ("srpt", 2, 2.0)]
    assert point.found.value == result.served / 400
    assert point.found.low < point.found.value < point.found.high
    assert point.limit == theory.srpt_limit(1.4, weibull(2.0), weibull(0.4)).throughput


@pytest.mark.parametrize("name", FIGURES)
def test_curves_are_the_limits(name: str) -> None:
    for data in impatient_curves(name, Runs(servers=(1,), jobs=STREAMS, load=2.0, progress=False)):
        panel = data.panel
        assert [curve.policy for curve in data.curves] == ["fcfs", "lcfs", "srpt"]
        for k in (0, 40, 80):
            shape = float(data.curves[2].shape[k])
            limit = theory.srpt_limit(2.0, panel.sizes(shape), panel.patience(shape))
            assert data.curves[2].value[k] == getattr(limit, panel.quantity)
        assert data.curves[0].shape[[0, -1]] == pytest.approx(panel.ends)
        assert all(panel.ends[0] <= shape <= panel.ends[1] for shape in panel.simulated)
        for given in (panel.sizes(2.0), panel.patience(2.0)):
            assert given.mean == pytest.approx(1.0)


def test_sizes_are_in_classes_around_the_threshold() -> None:
    panels = served_by_size(Runs(servers=(3, 20), jobs=20_000, progress=False))
    assert [(panel.name, panel.threshold) for panel in panels] == [
        ("exponential", theory.srpt_threshold(1.4, exponential())),
        ("weibull-0.5", theory.srpt_threshold(1.4, weibull(0.5))),
    ]
    for panel in panels:
        assert [(policy, servers) for policy, servers, _ in panel.curves] == [("srpt", 3), ("srpt", 20), ("fcfs", 20)]
        for policy, _, found in panel.curves:
            assert found.jobs.min() >= 400
            assert found.edges[0] == pytest.approx(panel.threshold / 8, rel=0.07)
            assert found.edges[-1] <= 4.3 * panel.threshold
            small, large = found.served[0], found.served[-1]
            assert (small - large > 0.3) if policy == "srpt" else (abs(small - large) < 0.2)


def test_any_number_of_threads_gives_the_same() -> None:
    one, two = (served_by_size(Runs(servers=(3,), jobs=2000, threads=threads, progress=False)) for threads in (1, 2))
    for a, b in zip(one, two, strict=True):
        for (*_, found), (*_, again) in zip(a.curves, b.curves, strict=True):
            np.testing.assert_array_equal(found.served, again.served)


# ---- crossings ------------------------------------------------------------------------------------


class KnownDifference(Comparison):
    """Results of fcfs and srpt whose difference in mean waiting is 0.3·ln(shape/0.5) ± 0.03."""

    def __init__(self, patience: float) -> None:
        self.patience = patience
        model = scenario({"servers": 1, "load": 1.4, "sizes": exponential().spec(), "patience": exponential().spec()})
        super().__init__(simulate(model, ["fcfs", "srpt"], jobs=100, progress=False).values())

    def difference(self, a: str, b: str, quantity: str = "mean_response", level: float = 0.95) -> Interval:
        assert (a, b, quantity) == ("fcfs", "srpt", "mean_waiting")
        value = 0.3 * math.log(self.patience / 0.5)
        return Interval(value, value - 0.03, value + 0.03, level)


def test_crossing_is_the_root_and_its_interval_that_of_the_difference_over_the_slope(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def known(self: Runs, label: str, servers: int, sizes: Any, patience: Any, policies: Any) -> Comparison:
        return KnownDifference(patience.spec()["shape"] if "-patience-" in label else 0.5 / sizes.spec()["shape"])

    monkeypatch.setattr(Runs, "simulate", known)
    found = [crossing for crossing in impatient_crossing(TINY).crossings if crossing.servers is not None]
    assert len(found) == 10
    for crossing in found:
        assert crossing.shape is not None
        expected = 0.5 if crossing.varied == "patience" else 1.0
        assert crossing.shape.value == pytest.approx(expected, rel=1e-3)
        assert crossing.shape.low == pytest.approx(expected * math.exp(-0.1), rel=1e-3)
        assert crossing.shape.high == pytest.approx(expected * math.exp(0.1), rel=1e-3)


def test_no_crossing_where_one_policy_is_ahead_everywhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Runs, "simulate", lambda *_: KnownDifference(5.0))
    found = impatient_crossing(TINY).crossings
    assert all((crossing.shape is None) == (crossing.servers is not None) for crossing in found)


def test_crossings_of_the_limit_lie_on_the_curve() -> None:
    made = [crossing_module._limit("patience", 1.0, 1.4), crossing_module._limit("service", 0.4, 1.4)]
    assert made[0].shape is not None
    assert made[1].shape is not None
    assert made[0].shape.value == theory.patience_crossing(1.4, exponential())
    assert made[1].shape.value == theory.service_crossing(1.4, weibull(0.4))
    assert made[1].mean_waiting == pytest.approx(theory.fcfs_limit(1.4, weibull(0.4)).mean_waiting, rel=1e-9)


def test_crossing_that_was_found_is_one_for_other_jobs_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ten servers, patience below and above the crossing: the sign of the difference, at 99.9 %, with another seed."""
    monkeypatch.setattr(crossing_module, "SERVICE_SHAPES", (2.0,))
    monkeypatch.setattr(crossing_module, "PATIENCE_SHAPES", ())
    limit, found = impatient_crossing(Runs(servers=(10,), jobs=100_000, progress=False)).crossings
    assert limit.shape is not None
    assert found.shape is not None
    assert found.shape.high - found.shape.low < 0.1
    assert found.shape.high < limit.shape.value
    for shape, sign in ((found.shape.value - 0.1, -1), (found.shape.value + 0.1, 1)):
        model = {"servers": 10, "load": 1.4, "sizes": weibull(2.0).spec(), "patience": weibull(shape).spec()}
        results = simulate(scenario(model), ["fcfs", "srpt"], jobs=200_000, seed=9, streams=20, progress=False)
        difference = results.difference("fcfs", "srpt", "mean_waiting", 0.999)
        assert math.copysign(1, difference.low) == math.copysign(1, difference.high) == sign


# ---- what is drawn --------------------------------------------------------------------------------


def legend(figure: Any) -> list[str]:
    return [text.get_text() for text in figure.legends[0].get_texts()]


def test_curves_and_points_are_drawn_with_their_intervals() -> None:
    panels = impatient_curves("impatient-service", TINY)
    figure = curves_figure(panels, "a title")
    left, right = figure.axes
    assert [axes.get_title(loc="left") for axes in figure.axes] == [data.panel.title for data in panels]
    assert (left.get_xlabel(), left.get_xscale()) == ("shape of the service [1]", "log")
    assert left.get_ylabel() == "mean waiting E[W] [mean service times]"
    assert left.get_ylim() == right.get_ylim()
    assert left.get_ylim()[0] == 0
    assert legend(figure) == ["fcfs, limit", "lcfs, limit", "srpt, limit", "2 servers", "5 servers"]
    data = panels[0]
    np.testing.assert_array_equal(left.lines[2].get_ydata(), data.curves[2].value)
    assert len(left.containers) == 6  # three policies, two numbers of servers
    drawn = left.containers[0].lines[0]
    points = [point for point in data.points if (point.policy, point.servers) == ("fcfs", 2)]
    np.testing.assert_array_equal(drawn.get_ydata(), [point.found.value for point in points])
    segments = left.containers[0].lines[2][0].get_segments()
    np.testing.assert_allclose(segments[1][:, 1], points[1].found[1:3])


def test_served_sizes_are_drawn_beside_the_step() -> None:
    panels = served_by_size(Runs(servers=(1, 20), jobs=5000, progress=False))
    figure = sizes_figure(panels, "a title")
    axes = figure.axes[0]
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("size / τ [1]", "P[served | size] [1]")
    assert legend(figure) == [
        "srpt, 1 server", "srpt, 20 servers", "fcfs, 20 servers", "srpt, limit", "fcfs, limit 1/ρ",
    ]  # fmt: skip
    step, blind, *curves = axes.lines
    np.testing.assert_array_equal(step.get_xdata()[1:3], [1, 1])
    np.testing.assert_array_equal(step.get_ydata(), [1, 1, 0, 0])
    assert blind.get_ydata()[0] == 1 / 1.4
    np.testing.assert_array_equal(curves[0].get_ydata(), panels[0].curves[0][2].served)
    assert len(axes.collections) == 3


CROSSINGS = CrossingData(
    1.4,
    np.array([0.5, 2.0]),
    np.array([0.4, 0.7]),
    [
        Crossing("patience", 1.0, None, Interval(0.586, 0.586, 0.586, 0.95), 0.08),
        Crossing("patience", 1.0, 50, Interval(0.45, 0.44, 0.47, 0.95), 0.05),
        Crossing("service", 0.4, 200, Interval(0.65, 0.63, 0.66, 0.95), 0.02),
        Crossing("service", 0.6, 50, None, math.nan),
    ],
)


def test_crossings_are_drawn_where_they_are() -> None:
    figure = crossing_figure(CROSSINGS, "a title")
    (axes,) = figure.axes
    assert legend(figure) == ["limit", "50 servers", "200 servers", "exponential patience"]
    assert {text.get_text() for text in axes.texts} == {"FCFS waits less", "SRPT waits less"}
    places = [(c.lines[0].get_xdata()[0], c.lines[0].get_ydata()[0]) for c in axes.containers]
    assert places == [(1.0, 0.45), (0.65, 0.4)]


def test_crossings_as_table_and_csv() -> None:
    rows = crossing_table(CROSSINGS).rows
    assert [row[:3] for row in rows] == [
        ("limit", "1", CROSSINGS.crossings[0].shape),
        ("50", "1", CROSSINGS.crossings[1].shape),
        ("200", CROSSINGS.crossings[2].shape, "0.4"),
        ("50", "none in the range", "0.6"),
    ]
    lines = crossing_csv(CROSSINGS).splitlines()
    assert lines[0] == "servers,service,patience,varied,low,high,mean_waiting"
    assert lines[1:3] == [",0.5,0.4,,,,", ",2.0,0.7,,,,"]
    assert lines[4:] == ["50,1.0,0.45,patience,0.44,0.47,0.05", "200,0.65,0.4,service,0.63,0.66,0.02"]


# ---- the commands ---------------------------------------------------------------------------------


def test_command_writes_figure_and_points_and_prints_tables(tmp_path: Path) -> None:
    out = tmp_path / "made" / "one.png"
    result = run("figure", "impatient-waiting", *FEW, "--out", str(out))
    assert result.exit_code == 0, result.stderr
    assert f"wrote one.csv, one.png to {out.parent}\n" in result.stderr
    assert out.read_bytes().startswith(b"\x89PNG")
    assert "Mean waiting E[W]: exponential service, Weibull patience" in result.stdout
    assert "5 servers" in result.stdout
    rows = list(csv.DictReader(out.with_suffix(".csv").read_text().splitlines()))
    points = [row for row in rows if row["servers"]]
    assert len(points) == 2 * 3 * (6 + 5)
    assert len(rows) - len(points) == 2 * 3 * 81
    assert all(float(row["low"]) <= float(row["value"]) <= float(row["high"]) for row in points)
    exponential_patience = [row for row in points if row["shape"] == "1.0" and row["policy"] != "srpt"]
    assert {round(float(row["limit"]), 12) for row in exponential_patience} == {round(1 - 1 / 1.4, 12)}


def test_json_has_all_points(tmp_path: Path) -> None:
    arguments = ("--servers", "3", "--jobs", "2000", "--load", "2", "--seed", "4")
    result = run("figure", "impatient-collapse", *arguments, "--out", str(tmp_path / "c.png"), "--json")
    assert result.exit_code == 0, result.stderr
    found = json.loads(result.stdout)
    assert (found["command"], found["load"], found["jobs"], found["seed"]) == ("figure impatient-collapse", 2, 2000, 4)
    rows = list(csv.DictReader((tmp_path / "c.csv").read_text().splitlines()))
    assert len(found["points"]) == len(rows)
    first = found["points"][0]
    assert (first["panel"], first["policy"], first["servers"]) == ("exponential", "srpt", 3)
    assert first["tau"] == theory.srpt_threshold(2.0, law({"law": "exponential", "mean": 1}))


def test_interrupted_command_goes_on_from_its_checkpoints(
    simulated: list[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    out = tmp_path / "one.png"
    arguments = ("figure", "impatient-collapse", *FEW, "--out", str(out), "--checkpoint", str(tmp_path / "kept"))
    whole = run(*arguments[:-2])
    expected, everything = out.with_suffix(".csv").read_text(), list(simulated)
    assert whole.exit_code == 0, whole.stderr
    out.unlink()
    simulated.clear()

    def interrupted(count: int = 2) -> Any:
        from queue_env.scoring import impatient_runs

        inner = impatient_runs.simulate

        def stopping(*given: Any, **options: Any) -> Comparison:
            if len(simulated) == count:
                signal.raise_signal(signal.SIGINT)
            found: Comparison = inner(*given, **options)
            return found

        return stopping

    with monkeypatch.context() as patch:
        patch.setattr("queue_env.scoring.impatient_runs.simulate", interrupted())
        result = run(*arguments)
    assert (result.exit_code, result.stdout) == (130, "")
    kept = tmp_path / "kept"
    assert result.stderr == f"interrupted: no figure was drawn; the same command goes on from what is in {kept}\n"
    assert not out.exists()
    assert {path.name for path in kept.iterdir()} == {f"{name}.npz" for name in everything[:2]}
    result = run(*arguments)
    assert result.exit_code == 0, result.stderr
    assert out.with_suffix(".csv").read_text() == expected
    refused = run(*arguments, "--seed", "1")
    assert refused.exit_code == 2
    assert "of a run with seed=1" in refused.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("--load 1", "load must be above 1 (overload), got 1.0"),
        ("--load nan", "load must be above 1 (overload), got nan"),
        ("--servers 0", "servers must be"),
        ("--jobs 5", "jobs must be at least 10, one for each stream, got 5"),
        ("--jobs many", "--jobs must be a whole number"),
        ("--threads 0", "--threads must be at least 1"),
        ("--out figure.pdf", "--out must be a file whose name ends in .png, got 'figure.pdf'"),
    ],
)
def test_wrong_input_is_one_line_before_any_work(arguments: str, message: str, simulated: list[str]) -> None:
    result = run("figure", "impatient-crossing", *arguments.split())
    assert (result.exit_code, result.stdout) == (2, "")
    assert message in result.stderr
    assert result.stderr.count("\n") == 1
    assert simulated == []
