"""What `tail_curve` and `score` refuse: at once, or within seconds."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from queue_env import allocation_policy, score, tail_curve
from tests.scoring.rules import all_but_the_last_three
from tests.scoring.small import small_curve, total_within

LIGHT: dict[str, Any] = {"servers": 2, "load": 0.5, "sizes": {"law": "exponential", "mean": 1.0}}
IMPATIENT = {**LIGHT, "patience": {"law": "exponential", "mean": 1.0}}
ATOMS = {**LIGHT, "sizes": {"law": "deterministic", "value": 1.0}}
MODULATED = {**LIGHT, "arrivals": {"process": "mmpp", "rates": [1.0, 3.0], "generator": [[-1.0, 1.0], [1.0, -1.0]]}}
ROOT = Path(__file__).parents[2]
AT_ONCE = 2.0  # seconds
SOON = 30.0


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ({**LIGHT, "load": 1.0}, "load"),
        ({**IMPATIENT, "load": 1.2}, "patience"),
        (IMPATIENT, "patience"),
        (ATOMS, "atoms"),
        (MODULATED, "arrivals"),
    ],
)
def test_scenarios_without_a_decomposition(source: dict[str, Any], message: str) -> None:
    began = time.perf_counter()
    with pytest.raises(ValueError, match=message):
        tail_curve("srpt", source, [1.0])
    if "patience" not in source:
        with pytest.raises(ValueError, match=message):
            score("srpt", source)
    assert time.perf_counter() - began < AT_ONCE


@pytest.mark.parametrize(
    "t_grid", [[2.0, 1.0], [1.0, 1.0], [0.0, 1.0], [-1.0], [float("nan")], [float("inf")], [], [[1.0]], [1.0, 1e9]]
)
def test_times_that_are_not_allowed(t_grid: Any) -> None:
    with pytest.raises(ValueError, match=r"t_grid|t must be"):
        tail_curve("srpt", LIGHT, t_grid)


@pytest.mark.parametrize(
    "arguments",
    [
        {"rel_half_width": 0.0},
        {"rel_half_width": -0.1},
        {"rel_half_width": float("nan")},
        {"threads": 0},
        {"threads": True},
        {"threads": 1.5},
        {"level": -1},
        {"level": True},
        {"level": 2.5},
        {"most_jobs": 0},
    ],
)
def test_arguments_that_are_not_allowed(arguments: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=next(iter(arguments))):
        tail_curve("srpt", LIGHT, [1.0], **arguments)


def test_arguments_of_scores_that_are_not_allowed() -> None:
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"rel_half_width": 0.0}, "rel_half_width"),
        ({"tail_range": (10.0, 1.0)}, "tail_range"),
        ({"tail_range": (1.0,)}, "tail_range"),
        ({"threads": 0}, "threads"),
        ({"most_jobs": -1.0}, "most_jobs"),
        ({"seed": -1}, "seed"),
        ({"plain_jobs": 0}, "jobs"),
    ]
    for model in (LIGHT, "high-load-2"):  # by a plain run, and by the decomposition
        for arguments, message in wrong:
            began = time.perf_counter()
            with pytest.raises(ValueError, match=message):
                score("srpt", model, **arguments)
            assert time.perf_counter() - began < SOON


def test_a_policy_without_a_steady_state() -> None:
    for call in (tail_curve, score):
        with pytest.raises(ValueError, match="thresh-split: d=10 overloads one side"):
            call("thresh-split:d=10", "high-load-2")


def test_a_policy_under_which_the_number_present_never_falls_to_the_level() -> None:
    lazy = allocation_policy(all_but_the_last_three)
    began = time.perf_counter()
    with pytest.raises(ValueError, match="has not fallen from 1 to 0"):
        small_curve(lazy, LIGHT, [1.0, 10.0], level=0)
    assert time.perf_counter() - began < SOON
    assert total_within(small_curve(lazy, LIGHT, [1.0, 10.0], level=4))


def test_a_policy_that_is_too_slow() -> None:
    """It serves at half of the speed that there is; the number present grows without end."""
    script = """
from queue_env import allocation_policy, tail_curve
from tests.scoring.rules import half_idle
model = {"servers": 2, "load": 0.9, "sizes": {"law": "exponential", "mean": 1.0}}
tail_curve(allocation_policy(half_idle), model, [1.0, 10.0], threads=2)
"""
    command = [sys.executable, "-c", script]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=2 * SOON, check=False)
    assert "ValueError" in run.stderr
    assert "stable" in run.stderr
