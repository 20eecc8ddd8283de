"""Sweeps: what a point is, what it does not depend on, and what is kept of it."""

from __future__ import annotations

import contextlib
import json
import math
import signal
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import queue_env
from queue_env import Sweep
from queue_env.scenarios import scenario
from queue_env.scoring import sweep as sweep_module
from queue_env.scoring.sweep_points import Measuring, make_points
from queue_env.tail import Estimate, jackknife, quotient
from tests.scoring.small import short_replications

LOADS = [0.5, 0.6, 0.7, 0.8, 0.9]
GRID: dict[str, Any] = {"load": LOADS, "servers": [1, 2, 3, 4, 8], "alpha": [1.2, 1.5, 2.0, 3.0]}
PAIR = ["srpt", "dynasplit"]


def small(over: dict[str, Any], policies: Any = "srpt", **options: Any) -> Sweep:
    """A sweep of few jobs a point."""
    return queue_env.sweep(options.pop("source", "high-load-2"), policies, over, **{"jobs": 2000, **options})


# ---- what a point is ------------------------------------------------------------------------------


def test_a_hundred_points_are_the_same_for_any_number_of_threads() -> None:
    assert math.prod(len(values) for values in GRID.values()) == 100
    one = small(GRID, PAIR, threads=1).to_list()
    assert len(one) == 200
    assert small(GRID, PAIR, threads=2).to_list() == one


def test_streams_on_threads_give_the_same() -> None:
    over = {"load": [0.5, 0.9]}
    one, two = (small(over, PAIR, jobs=400_000, threads=threads).to_list() for threads in (1, 2))
    assert one == two


def test_a_point_is_a_run_of_simulate_with_its_seed() -> None:
    row = small({"load": [0.6, 0.7], "alpha": [2.0]}, PAIR, measure="quantile:0.9").to_list()[-1]
    model = scenario("high-load-2", load=0.7, sizes={"law": "pareto", "alpha": 2.0, "mean": 1.0})
    result = queue_env.simulate(model, PAIR, jobs=2000, seed=row["seed"])["dynasplit"]
    interval = result.interval("quantile:0.9")
    assert (row["value"], row["low"], row["high"]) == (interval.value, interval.low, interval.high)
    assert (row["load"], row["alpha"], row["policy"]) == (0.7, 2.0, "dynasplit")


def test_a_point_does_not_depend_on_the_others() -> None:
    few, many = small({"load": [0.6, 0.8]}), small({"load": [0.8, 0.55, 0.6], "servers": [2, 4]})
    rows = {(row["load"], row["servers"]): row for row in many.to_list()}
    for row in few.to_list():
        assert {**row, "servers": 2} == rows[row["load"], 2]


def test_other_seeds_and_points_have_other_jobs() -> None:
    seeds = [point.seed for found in (small(GRID), small(GRID, seed=1)) for point in found.points]
    assert len(set(seeds)) == 200


def test_policies_of_one_scenario_meet_the_same_jobs() -> None:
    found = small({"b": [0.5, 2.0], "load": [0.8]}, ["srpt", "backlog-split"])
    assert len({point.seed for point in found.points}) == 1
    srpt, split = found.values("srpt"), found.values("backlog-split")
    assert srpt[0] == srpt[1]
    assert split[0] != split[1]
    assert [point.policies[1].label for point in found.points] == ["backlog-split:b=0.5", "backlog-split:b=2"]


def test_the_index_changes_and_the_mean_size_stays() -> None:
    points = small({"alpha": [1.2, 3.0], "servers": [4.0]}, source=scenario("high-load-2", load=0.7)).points
    assert [point.scenario.sizes.spec()["alpha"] for point in points] == [1.2, 3.0]
    assert [point.scenario.sizes.mean for point in points] == pytest.approx([1.0, 1.0])
    assert {(point.scenario.servers, point.scenario.load) for point in points} == {(4, 0.7)}


def test_names_of_both_sizes_and_policies() -> None:
    weibull = scenario("high-load-2", sizes={"law": "weibull", "shape": 0.5, "mean": 1.0})
    of_sizes = small({"sizes.shape": [0.5, 1.0]}, "dynasplit", source=weibull)
    of_policy = small({"policy.shape": [2.0, 4.0]}, "dynasplit", source=weibull)
    assert of_sizes.points[1].scenario.sizes.spec()["shape"] == 1.0
    assert of_policy.points[1].policies[0].label == "dynasplit:shape=4"
    with pytest.raises(
        ValueError, match=r"axis must be one of load, servers, .*sizes\.shape, policy\.shape, .*'shape'"
    ):
        small({"shape": [1.0]}, "dynasplit", source=weibull)


def test_words_are_values_too() -> None:
    found = small({"margin": ["log", "power"]}, PAIR)
    assert found.axes == {"margin": ("log", "power")}
    assert found.values("dynasplit")[0] != found.values("dynasplit")[1]


def test_own_policies() -> None:
    policy = queue_env.index_policy(lambda size, remaining, number, parameters: remaining, name="mine")
    found = small({"load": [0.7]}, ["srpt", policy])
    assert found.values("mine") == pytest.approx(found.values("srpt"))
    assert found.ratios("mine", "srpt")[0].value == pytest.approx(1.0)


@pytest.mark.parametrize(("source", "policy"), [("light-2", "fcfs"), ("high-load-2", "srpt")])
def test_scores(source: str, policy: str) -> None:
    options: dict[str, Any] = {"rel_half_width": 0.5, "most_jobs": 4e6}
    with short_replications():
        (row,) = small({"load": [0.5]}, policy, measure="score", source=source, **options).to_list()
        score = queue_env.score(
            policy, scenario(source, load=0.5), plain_jobs=2000, seed=row["seed"], **options, progress=False
        )
    assert (row["value"], row["low"], row["high"]) == (score.score, score.low, score.high)
    assert (row["jobs"], row["reached"]) == (score.jobs, score.reached)


# ---- ratios ---------------------------------------------------------------------------------------


def mean_of(rows: Any) -> Estimate:
    """The mean of rows, from the jackknife."""
    sums = np.column_stack([rows, np.ones(len(rows))])
    return jackknife(sums, lambda sums: quotient(sums[..., 0], sums[..., 1]))


def test_ratio_of_proportional_rows_is_certain() -> None:
    rows = np.array([1.0, 2.0, 4.0, 8.0])
    assert mean_of(3 * rows).ratio_to(mean_of(rows)) == pytest.approx((3.0, 3.0, 3.0, 0.95))


def test_ratio_intervals_hold_the_ratio() -> None:
    """Of 400 intervals of 95 %, 380 are expected to; fewer than 364 have a probability below 10⁻³."""
    rng = np.random.default_rng(3)
    hits = 0
    for _ in range(400):
        common = rng.normal(10, 1, 20)
        found = mean_of(1.5 * common + rng.normal(0, 0.3, 20)).ratio_to(mean_of(common + rng.normal(0, 0.3, 20)))
        hits += found.low <= 1.5 <= found.high
        assert found.half_width < 0.2  # paired: two separate intervals would have twice that
    assert 364 <= hits < 400


def test_ratio_of_unequal_numbers_of_rows_pairs_the_first() -> None:
    rows = np.array([1.0, 2.0, 4.0, 8.0, 3.0])
    found = mean_of(rows).ratio_to(mean_of(rows[:4]))
    assert found.value == pytest.approx(rows.mean() / rows[:4].mean())
    assert 0 < found.half_width < 1


# ---- what is refused ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("over", "options", "message"),
    [
        ({}, {}, "over must be at least one axis"),
        ({"load": []}, {}, "values of load must be a list of at least one"),
        ({"load": "0.5"}, {}, "values of load must be a list"),
        ({"load": ["x"]}, {}, "values of load must be numbers, got 'x'"),
        ({"load": [0.5, 1.5]}, {}, "at load=1.5: scenario: load must be < 1 without patience, got 1.5"),
        ({"servers": [2, 2.5]}, {}, "at servers=2.5: .*servers"),
        ({"alpha": [0.9]}, {}, "at alpha=0.9: .*infinite"),
        ({"lod": [0.5]}, {}, "axis must be one of load, servers, alpha, for these sizes and policies, got 'lod'"),
        ({"minimum": [0.5]}, {}, "axis must be one of load, servers, alpha,"),
        ({"policy.alpha": [0.5]}, {}, "axis must be one of load, servers, alpha,"),
        ({"margin": ["log"]}, {}, "axis must be one of load, servers, alpha,"),
        ({"margin": ["lag"]}, {"policies": "dynasplit"}, "margin='lag', allowed: log, power, constant"),
        ({"b": [1.0]}, {"policies": "backlog-split:b=2"}, "policy must be without b, over which the sweep goes"),
        ({"load": [0.5]}, {"policies": []}, "policy must be at least one"),
        ({"load": [0.5]}, {"policies": ["srpt", "srpt"]}, "policy must be all different"),
        ({"load": [0.5]}, {"policies": "srtp"}, "did you mean 'srpt'"),
        (
            {"load": [0.5]},
            {"measure": "p99"},
            "sweep: measure must be score or a quantity of results, result: quantity must be one of",
        ),
        ({"load": [0.5]}, {"measure": "quantile:2"}, "number after quantile must be between 0 and 1"),
        ({"load": [1.2]}, {"measure": "score", "source": "impatient-100"}, "measure must be another than score"),
        ({"load": [1.2]}, {"policies": "ps", "source": "impatient-100"}, "policy must be one with a steady state"),
        ({"load": [0.5]}, {"jobs": 0}, "jobs must be an integer of at least 1, got 0"),
        ({"load": [0.5]}, {"threads": 0}, "threads must be an integer of at least 1, got 0"),
        ({"load": [0.5]}, {"seed": -1}, "seed must be an integer of at least 0, got -1"),
        ({"load": [0.5]}, {"rel_half_width": 0.0}, "rel_half_width must be a finite number > 0"),
        ({"load": [0.5]}, {"checkpoint": __file__}, "checkpoint must be a directory"),
    ],
)
def test_refused_before_any_work(
    over: dict[str, Any], options: dict[str, Any], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sweep_module, "simulate", lambda *_, **__: pytest.fail("work has begun"))
    with pytest.raises(ValueError, match=message):
        small(over, options.pop("policies", "srpt"), **options)


def test_unknown_policies_of_a_result() -> None:
    with pytest.raises(ValueError, match="policy must be one of srpt, got 'fcfs'"):
        small({"load": [0.5]}).values("fcfs")


# ---- what is kept ---------------------------------------------------------------------------------


def test_finished_points_are_taken_from_the_checkpoint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = tmp_path / "new" / "kept"
    first = small({"load": [0.5, 0.6]}, PAIR, checkpoint=kept)
    whole = small({"load": LOADS}, PAIR)
    done: list[float] = []
    real = sweep_module.measure_point

    def noted(point: Any, *arguments: Any) -> Any:
        done.append(point.scenario.load)
        return real(point, *arguments)

    monkeypatch.setattr(sweep_module, "measure_point", noted)
    assert small({"load": LOADS}, PAIR, checkpoint=kept).to_list() == whole.to_list()
    assert done == [0.7, 0.8, 0.9]
    assert small({"load": [0.5, 0.6]}, PAIR, checkpoint=kept).to_list() == first.to_list()
    assert done == [0.7, 0.8, 0.9]
    assert len(list(kept.iterdir())) == 5


def test_what_was_measured_otherwise_is_measured_anew(tmp_path: Path) -> None:
    point = make_points(scenario("high-load-2"), ["srpt"], {"load": [0.5]}, Measuring("score", 10, 0.1, 1e6), 0)[1][0]
    others = [
        Measuring("mean_response", 10, 0.1, 1e6),
        Measuring("score", 20, 0.1, 1e6),
        Measuring("score", 10, 0.2, 1e6),
        Measuring("score", 10, 0.1, 2e6),
    ]
    assert len({point.key(measuring) for measuring in others} | {point.key(Measuring("score", 10, 0.1, 1e6))}) == 5
    # The precision of scores means nothing for another measure.
    assert point.key(Measuring("tail:1", 10, 0.1, 1e6)) == point.key(Measuring("tail:1", 10, 0.5, 2e6))


def test_numbers_that_are_not_there_are_kept_as_such(tmp_path: Path) -> None:
    found = small({"load": [0.5]}, measure="tail:1e15", checkpoint=tmp_path)
    again = small({"load": [0.5]}, measure="tail:1e15", checkpoint=tmp_path)
    assert found.to_list()[0]["value"] == again.to_list()[0]["value"] == 0.0
    assert math.isnan(again.to_list()[0]["low"])


@pytest.mark.parametrize("text", ["", "{", "[]", '{"found": [{}]}', '{"found": [{"value": "x"}]}'])
def test_a_damaged_file_is_refused(text: str, tmp_path: Path) -> None:
    small({"load": [0.5]}, checkpoint=tmp_path)
    (file,) = tmp_path.iterdir()
    file.write_text(text)
    with pytest.raises(ValueError, match="checkpoint must hold files that sweep wrote, got"):
        small({"load": [0.5]}, checkpoint=tmp_path)


def test_a_file_says_what_it_is_of(tmp_path: Path) -> None:
    small({"load": [0.5]}, PAIR, checkpoint=tmp_path)
    (file,) = tmp_path.iterdir()
    document = json.loads(file.read_text())
    assert document["scenario"]["load"] == 0.5
    assert document["policies"] == PAIR


def test_an_interrupted_point_is_not_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = sweep_module.simulate

    def interrupted(model: Any, *arguments: Any, **options: Any) -> Any:
        results = real(model, *arguments, **options)
        if model.load == 0.7:
            with contextlib.suppress(KeyboardInterrupt):  # as `simulate` does, which then returns what it has
                signal.raise_signal(signal.SIGINT)
        return results

    with monkeypatch.context() as patch:
        patch.setattr(sweep_module, "simulate", interrupted)
        with pytest.raises(KeyboardInterrupt):
            small({"load": LOADS}, checkpoint=tmp_path)
    assert len(list(tmp_path.iterdir())) == 2
    assert small({"load": LOADS}, checkpoint=tmp_path).to_list() == small({"load": LOADS}).to_list()
