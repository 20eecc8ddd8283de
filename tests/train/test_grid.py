"""Grids of parameters, from their text to the labels of policies."""

import pytest

from queue_env.cli.grids import parse_grid
from queue_env.rules import parse_policy
from train.grid import candidates


@pytest.mark.parametrize(
    ("text", "name", "values"),
    [
        ("d=1:2:3", "d", ["1", "1.5", "2"]),
        (" d = 1:2:1", "d", ["1"]),
        ("d=2:1:2", "d", ["2", "1"]),
        ("kappa=-0.5:0.5:3", "kappa", ["-0.5", "0", "0.5"]),
        ("d=0.01:100:5:log", "d", ["0.01", "0.1", "1", "10", "100"]),
        ("d=1:2:4", "d", ["1", "1.33333", "1.66667", "2"]),
        ("d=3", "d", ["3"]),
        ("margin=log, power", "margin", ["log", "power"]),
    ],
)
def test_grids(text: str, name: str, values: list[str]) -> None:
    assert parse_grid(text, "--parameter") == (name, values)


@pytest.mark.parametrize(
    "text",
    [
        "d",
        "d=",
        "=1:2:3",
        "d=1:2",
        "d=1:2:3:lin",
        "d=1:2:3:log:log",
        "d=a:2:3",
        "d=1:2:2.5",
        "d=1:2:0",
        "d=1:2:1000000",
    ],
)
def test_texts_that_are_no_grid(text: str) -> None:
    with pytest.raises(ValueError, match=r"--parameter must be NAME=LOW:HIGH:COUNT.*, got '"):
        parse_grid(text, "--parameter")


@pytest.mark.parametrize("text", ["d=1:inf:3", "d=nan:2:3"])
def test_ends_are_finite(text: str) -> None:
    with pytest.raises(ValueError, match="with finite numbers"):
        parse_grid(text, "--parameter")


@pytest.mark.parametrize("text", ["d=0:1:3:log", "d=1:-1:3:log"])
def test_equal_ratios_need_positive_ends(text: str) -> None:
    with pytest.raises(ValueError, match="with LOW and HIGH above 0"):
        parse_grid(text, "--parameter")


def test_candidates_are_all_combinations_beside_what_is_fixed() -> None:
    labels = candidates("dynasplit:delta=0.4", ["margin=log,power", "shape=2:4:2"])
    assert labels == [
        f"dynasplit:delta=0.4,margin={margin},shape={shape}" for margin in ("log", "power") for shape in (2, 4)
    ]
    assert [parse_policy(label).label for label in labels] == labels


def test_a_value_that_is_written_twice_runs_once() -> None:
    assert candidates("thresh-split", ["d=1,1.0,1.0000001"]) == ["thresh-split:d=1", "thresh-split:d=1.0000001"]


@pytest.mark.parametrize(
    ("policy", "grids", "message"),
    [
        ("thresh-spilt", ["d=1"], "did you mean 'thresh-split'"),
        ("thresh-split", ["e=1"], "parameter 'e' is not known, allowed: d"),
        ("thresh-split", ["d=-1:1:3"], "d='-1', allowed: a number above 0"),
        ("dynasplit", ["margin=lin"], "margin='lin', allowed: log, power, constant"),
        ("thresh-split:d=1", ["d=1:2:3"], "must name each parameter once, got d, d"),
        ("backlog-split", ["b=1", "b=2"], "must name each parameter once, got b, b"),
    ],
)
def test_candidates_that_are_no_policies(policy: str, grids: list[str], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        candidates(policy, grids)
