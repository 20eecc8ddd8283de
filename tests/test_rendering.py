"""What is shown of a queue: the picture, its numbers, axes and colours, and the text."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from pictures import EXTREMES, picture

from queue_env.rendering import draw_text
from queue_env.rendering.numerals import clock, job_name, short, tick
from queue_env.rendering.scales import DecadeScale, SizeScale
from queue_env.rendering.text import BAR, MOST_IN_SERVICE, MOST_WAITING
from queue_env.rendering.theme import THEME, Colour, age_colours, ink_on

Floats = NDArray[np.float64]


# ---- the picture --------------------------------------------------------------------------------------------


def test_picture_counts() -> None:
    shown = picture(sizes=[4.0, 2.0, 1.0, 3.0], rates=[0.25, 0.0, 1.0, 0.75], response_times=[3.0, 1.0, 2.0])
    assert (shown.number, shown.served, shown.in_use, shown.mean_response) == (4, 3, 2.0, 2.0)
    assert shown.in_service.tolist() == [0, 2, 3]
    assert shown.waiting.tolist() == [1]
    assert math.isnan(picture().mean_response)
    assert math.isnan(picture().p99_response)


@pytest.mark.parametrize("served", [1, 2, 99, 100, 101, 1000, 12_345])
def test_p99_is_an_order_statistic(served: int) -> None:
    times = np.random.default_rng(served).permutation(served) + 1.0
    assert picture(response_times=times).p99_response == -(-99 * served // 100)
    assert times[0] == np.random.default_rng(served).permutation(served)[0] + 1  # the picture's data stay in order


def test_anchor_is_always_among_the_first() -> None:
    shown = picture(sizes=np.ones(9), anchor=7)
    assert shown.first(shown.waiting, 3) == [0, 1, 7]
    assert shown.first(shown.waiting, 8) == [*range(8)]
    assert shown.first(shown.waiting[:5], 3) == [0, 1, 2]
    assert shown.first(shown.in_service, 3) == []


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"sizes": [1.0, math.nan]}, "picture: sizes must be a one-dimensional array of finite numbers >= 0"),
        ({"sizes": [[1.0]]}, "picture: sizes must be a one-dimensional"),
        ({"ages": [1.0]}, r"picture: shape of ages must be \(0,\), got \(1,\)"),
        ({"rates": [-1.0]}, "picture: rates must be"),
        ({"numbers": [3]}, "picture: shape of numbers must be"),
        ({"response_times": [math.inf]}, "picture: response_times must be"),
        ({"bound_tail": [1.0]}, "picture: shape of bound_tail must be"),
        ({"servers": 0}, "picture: servers must be >= 1, got 0"),
        ({"sizes": [1.0], "anchor": 1}, "picture: anchor must be -1 or the place of one of 1 jobs, got 1"),
        ({"tail_range": (0.0, 1.0)}, "picture: tail_range must be two finite times"),
        ({"tail_range": (2.0, 2.0)}, "picture: tail_range must be two finite times"),
    ],
)
def test_picture_refuses(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        picture(**fields)


# ---- numbers and axes ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0.00"),
        (1.0, "1.00"),
        (9.994, "9.99"),
        (9.996, "10.0"),
        (99.96, "100"),
        (12_345.6, "12,346"),
        (99_999.4, "99,999"),
        (99_999.6, "1e5"),
        (1_234_567.0, "1.23e6"),
        (0.0123, "0.012"),
        (0.00042, "4.2e-4"),
        (-3.456, "-3.46"),
        (-98_765.4, "-98,765"),
        (math.nan, "–"),
    ],
)
def test_short_numbers(value: float, text: str) -> None:
    assert short(value) == text


@given(st.floats(1e-9, 1e12))
def test_short_numbers_are_short_and_right(value: float) -> None:
    text = short(value)
    assert len(text) <= 7
    assert float(text.replace(",", "")) == pytest.approx(value, rel=0.051 if value < 1 else 0.0051)


def test_clock_and_ticks() -> None:
    assert [clock(value) for value in (0.0, 1234.56, 2e6)] == ["0.0", "1,234.6", "2e6"]
    assert [tick(value) for value in (0.0, 0.5, 20.0, 1000.0, 1e6, 2e7, 1e-4)] == [
        "0",
        "0.5",
        "20",
        "1,000",
        "1e6",
        "2e7",
        "1e-4",
    ]


def test_job_names() -> None:
    assert [job_name(number) for number in (0, 1_234_567, 100_000_002)] == ["0", "1234567", "…000002"]


@given(st.floats(1e-9, 1e12), st.floats(1e-3, 1e3))
def test_size_scale_holds_all_and_keeps_its_names_apart(largest: float, unit: float) -> None:
    scale = SizeScale.holding(largest, unit, 200)
    assert max(largest, 10 * unit) <= scale.top <= 2.5 * 1.0001 * max(largest, 10 * unit)
    places = scale.place(np.array([0.0, largest / 2, largest, scale.top]))
    assert places[0] == 0
    assert places[-1] == pytest.approx(200)
    assert np.all(np.diff(places[:3]) > 0)
    ticks = scale.ticks(44)
    assert len(ticks) >= 2
    assert np.all(np.diff(scale.place(ticks)) >= 44 * (1 - 1e-9))


def test_decade_scale() -> None:
    scale = DecadeScale(-1, 3, 100, 500)
    assert scale.place([0.1, 1.0, 1000.0]).tolist() == [100, 200, 500]
    assert list(scale.powers(60)) == [-1, 0, 1, 2, 3]
    assert list(scale.powers(101)) == [-1, 1, 3]


# ---- colours ------------------------------------------------------------------------------------------------


def test_age_colours_are_calm_before_t0_and_alarming_from_t1_on() -> None:
    calm, alarming = THEME.ages[0][1], THEME.ages[-1][1]
    shown = age_colours([0.0, 0.5, 1.0, 1e4, 1e9], (1.0, 1e4))
    assert shown.dtype == np.uint8
    assert [tuple(row) for row in shown.tolist()] == [calm, calm, calm, alarming, alarming]
    middle = age_colours(10.0 ** (4 * THEME.ages[3][0]), (1.0, 1e4))
    assert tuple(middle.tolist()) == THEME.ages[3][1]


# Machado, Oliveira, Fernandes, A physiologically-based model for simulation of color vision deficiency (2009),
# severity 1, on linear RGB.
VISION = {
    "normal": np.eye(3),
    "protanopia": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    "deuteranopia": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.01182, 0.04294, 0.968881]],
    "tritanopia": [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.3039]],
}


def cielab(linear: Floats) -> Floats:
    weights = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])
    ratio = linear @ weights.T / (0.9505, 1.0, 1.089)
    x, y, z = np.where(ratio > 0.008856, np.cbrt(ratio), 7.787 * ratio + 16 / 116).T
    return np.stack([116 * y - 16, 500 * (x - y), 200 * (y - z)], axis=-1)


@pytest.mark.parametrize("vision", VISION)
def test_ages_a_third_of_the_range_apart_look_different_to_all_eyes(vision: str) -> None:
    position = np.linspace(0, 1, 41)
    shown = age_colours(10.0 ** (4 * position), (1.0, 1e4)) / 255
    linear = np.where(shown < 0.04045, shown / 12.92, ((shown + 0.055) / 1.055) ** 2.4)
    seen = cielab(np.clip(linear @ np.transpose(VISION[vision]), 0, 1))
    distance = np.linalg.norm(seen[:, np.newaxis] - seen, axis=-1)
    apart = np.abs(position[:, np.newaxis] - position) > 0.33
    assert distance[apart].min() > 20  # ten are seen at a glance


def test_ink_can_be_read_on_all_ages() -> None:
    for colour in age_colours(np.geomspace(1, 1e4, 50), (1.0, 1e4)).tolist():
        red, green, blue = colour
        ink = ink_on((red, green, blue))
        weight = (0.299, 0.587, 0.114)
        assert abs(np.dot(colour, weight) - np.dot(ink, weight)) > 90


def test_theme_colours_are_colours() -> None:
    colours: list[Colour] = [THEME.background, THEME.card, THEME.ink, *(colour for _, colour in THEME.ages)]
    assert all(len(colour) == 3 and min(colour) >= 0 and max(colour) <= 255 for colour in colours)


# ---- text ---------------------------------------------------------------------------------------------------


def test_text_of_a_queue() -> None:
    shown = picture(
        sizes=[8.0, 2.0, 0.5],
        remaining=[4.0, 0.5, 0.5],
        ages=[100.0, 3.25, 0.0],
        rates=[0.625, 1.0, 0.0],
        numbers=[7, 12, 13],
        anchor=0,
        response_times=[1.0, 2.0],
        reward=-3.5,
    )
    head, service, first, second, waiting, third = draw_text(shown).split("\n")
    assert head == (
        "high-load-2  time 12.5  present 3  in use 1.62 of 2  served 2  mean response 1.50  p99 2.00  reward -3.50"
    )
    assert (service, waiting) == ("in service: 2", "waiting: 1")
    assert first.split() == ["#7", "rate", "0.62", "|██████████", "|", "4.00", "of", "8.00", "age", "100", "anchor"]
    assert second.split() == ["#12", "rate", "1.00", "|█████", "|", "0.50", "of", "2.00", "age", "3.25"]
    assert third.split() == ["#13", f"|{'█' * BAR}|", "0.50", "of", "0.50", "age", "0.00"]
    assert len({line.index("|") for line in (first, second, third)}) == 1  # the bars stand below each other


def test_text_without_jobs_and_response_times() -> None:
    text = draw_text(picture())
    assert text == "high-load-2  time 12.5  present 0  in use 0.00 of 2  served 0  mean response –  p99 –  reward 0.00"


def test_text_is_limited_and_keeps_the_anchor() -> None:
    rates = np.repeat([1.0, 0.0], [20, 49])
    lines = draw_text(picture(servers=20, sizes=np.ones(69), rates=rates, anchor=60)).split("\n")
    assert len(lines) == 1 + (1 + MOST_IN_SERVICE + 1) + (1 + MOST_WAITING + 1)
    assert lines[1 + 1 + MOST_IN_SERVICE] == "  ... and 4 more"
    assert lines[-1] == "  ... and 37 more"
    assert lines[-2].startswith("  #60 ")
    assert lines[-2].endswith(" anchor")
    assert sum("anchor" in line for line in lines) == 1


@given(st.floats(1e-6, 1.0), st.floats(1e-6, 1.0))
def test_more_remaining_is_a_longer_bar_of_text(one: float, other: float) -> None:
    shown = picture(sizes=np.full(2, 3.0), remaining=3.0 * np.array([one, other]))
    eighths = [
        sum(8 if cell == "█" else " ▏▎▍▌▋▊▉".index(cell) for cell in line.split("|")[1])
        for line in draw_text(shown).split("\n")[2:]
    ]
    assert (eighths[0] - eighths[1]) * (one - other) >= 0
    assert eighths == [pytest.approx(max(8 * BAR * share, 1), abs=0.51) for share in (one, other)]


@pytest.mark.parametrize("name", EXTREMES)
def test_text_of_extremes(name: str) -> None:
    lines = draw_text(EXTREMES[name]).split("\n")
    assert len(lines) <= 33
    assert max(map(len, lines[1:]), default=0) <= 100
    assert all(line == line.rstrip() and line.isprintable() for line in lines)
