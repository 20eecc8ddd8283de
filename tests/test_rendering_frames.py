"""Frames of a queue: what is drawn where, and that it can be read."""

from __future__ import annotations

import time
from itertools import zip_longest
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from pictures import EXTREMES, bar_length, coloured, crowd, halves, picture

from queue_env.rendering import Painter
from queue_env.rendering.numerals import short
from queue_env.rendering.scales import DecadeScale
from queue_env.rendering.theme import THEME, age_colours


@pytest.fixture(scope="module")
def painter() -> Painter:
    return Painter()


# ---- frames -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", EXTREMES)
def test_frames_of_extremes(name: str, painter: Painter) -> None:
    frame = painter.frame(EXTREMES[name])
    assert frame.shape == (600, 960, 3)
    assert frame.dtype == np.uint8
    assert frame.flags.c_contiguous
    assert len(np.unique(frame.reshape(-1, 3), axis=0)) > 20


@pytest.mark.parametrize("size", [(640, 400), (960, 600), (1281, 723), (700, 1000)])
def test_frame_sizes(size: tuple[int, int]) -> None:
    assert Painter(size).frame(EXTREMES["usual"]).shape == (size[1], size[0], 3)


def test_same_picture_same_frame(painter: Painter) -> None:
    frames = [painter.frame(shown).tobytes() for shown in EXTREMES.values()]
    again = [painter.frame(shown).tobytes() for shown in reversed(EXTREMES.values())]
    assert again[::-1] == frames
    assert Painter().frame(EXTREMES["500 jobs"]).tobytes() == frames[list(EXTREMES).index("500 jobs")]
    assert len(set(frames)) == len(frames)


def test_frames_are_not_overwritten(painter: Painter) -> None:
    first = painter.frame(EXTREMES["usual"])
    kept = first.copy()
    painter.frame(EXTREMES["no jobs"])
    assert np.array_equal(first, kept)
    first[:] = 0
    assert np.array_equal(painter.frame(EXTREMES["usual"]), kept)


Texts = list[tuple[float, float, float, float, str]]


@pytest.fixture
def written(monkeypatch: pytest.MonkeyPatch, painter: Painter) -> Texts:
    """The texts of the frames drawn meanwhile: left, top, right, bottom and what is written."""
    painter.frame(picture())
    from queue_env.rendering.canvas import Canvas

    texts: Texts = []
    write = Canvas.text

    def note(self: Canvas, x: float, middle: float, text: str, size: int = THEME.text, *rest: Any, **more: Any) -> int:
        width = write(self, x, middle, text, size, *rest, **more)
        align = more.get("align", rest[1] if len(rest) > 1 else "left")
        left = x - {"left": 0, "centre": width / 2, "right": width}[align]
        half = 0.4 * size * self.unit  # of the height of capital letters and figures
        texts.append((left, middle - half, left + width, middle + half, text))
        return width

    monkeypatch.setattr(Canvas, "text", note)
    return texts


@pytest.mark.parametrize("size", [(640, 400), (960, 600), (1600, 900)])
@pytest.mark.parametrize("name", EXTREMES)
def test_texts_stay_apart(name: str, size: tuple[int, int], written: Texts) -> None:
    Painter(size).frame(EXTREMES[name])
    assert len(written) > 20
    for place, (left, top, right, bottom, text) in enumerate(written):
        assert left >= 0, text
        assert top >= 0, text
        assert right <= size[0], text
        assert bottom <= size[1], text
        for other in written[:place]:
            apart = left >= other[2] or right <= other[0] or top >= other[3] or bottom <= other[1]
            assert apart, f"{text!r} is on {other[4]!r}"


def test_texts_of_a_frame(written: Texts, painter: Painter) -> None:
    painter.frame(EXTREMES["usual"])
    texts = [text for *_, text in written]
    shown = EXTREMES["usual"]
    wanted = ["high-load-2", "12.5", "14", "2,000", short(shown.mean_response), short(shown.p99_response), "-1,234"]
    wanted += ["P[T > t] so far", "asymptotic bound P[S > c t]", "response time t [time units]", "2.00 of 2 in use"]
    wanted += ["3 in service, 11 waiting", *(str(number) for number in shown.numbers)]
    assert set(wanted) <= set(texts)
    written.clear()
    painter.frame(EXTREMES["500 jobs"])
    texts = [text for *_, text in written]
    rows = [text for text in texts if text.isdigit() and int(text) >= 4000]
    assert f"+ {500 - len(set(rows))} more waiting" in texts


def test_bars_are_as_long_as_the_scale_says(painter: Painter) -> None:
    remaining = np.array([900.0, 300.0, 100.0, 30.0, 10.0, 3.0, 1.0])
    ages = np.geomspace(2000, 2, 7)
    frame, _ = halves(painter.frame(picture(sizes=np.full(7, 1000.0), remaining=remaining, ages=ages)))
    lengths = np.array([bar_length(frame, colour) for colour in age_colours(ages, (1.0, 1e4))])
    whole = lengths[0] / np.log1p(remaining[0]) * np.log1p(1000.0)
    np.testing.assert_allclose(lengths, whole * np.log1p(remaining) / np.log1p(1000.0), atol=1.1)
    assert whole > 150


def test_bar_and_track_together_are_the_size(painter: Painter) -> None:
    sizes, ages = np.array([500.0, 50.0, 5.0]), np.array([300.0, 30.0, 3.0])
    full, _ = halves(painter.frame(picture(sizes=sizes, ages=ages)))
    half, _ = halves(painter.frame(picture(sizes=sizes, remaining=sizes / 10, ages=ages)))
    for colour in age_colours(ages, (1.0, 1e4)):
        row = int(coloured(full, colour).sum(axis=1).argmax())
        tracks = coloured(half[row], THEME.track).sum()
        assert bar_length(half, colour) < bar_length(full, colour)
        assert tracks + bar_length(half, colour) == pytest.approx(bar_length(full, colour), abs=3)


def test_jobs_in_service_stand_above_the_waiting_ones_in_arrival_order(painter: Painter) -> None:
    ages = np.geomspace(2000, 2, 6)
    rates = [0.0, 1.0, 0.0, 0.0, 0.5, 0.0]
    jobs, _ = halves(painter.frame(picture(sizes=np.full(6, 9.0), ages=ages, rates=rates)))
    heights = [int(np.flatnonzero(coloured(jobs, colour).any(axis=1))[0]) for colour in age_colours(ages, (1.0, 1e4))]
    assert np.argsort(heights).tolist() == [1, 4, 0, 2, 3, 5]
    assert set(np.diff(sorted(heights))) == {THEME.row}
    gauges = coloured(jobs, THEME.gauge)
    full, part = (gauges[height : height + THEME.row].sum(axis=1).max() for height in (heights[1], heights[4]))
    assert full == 2 * part


def test_anchor_is_marked(painter: Painter) -> None:
    shown = {"sizes": np.full(4, 9.0), "rates": [1.0, 0.0, 0.0, 1.0]}
    plain = painter.frame(picture(**shown))
    for anchor in (0, 2):
        jobs, servers = halves(painter.frame(picture(**shown, anchor=anchor)))
        assert coloured(jobs, THEME.anchor).sum() > 20
        assert coloured(jobs, THEME.anchor_tint).sum() > 1000
        assert (coloured(servers, THEME.anchor).sum() > 100) == (anchor == 0)
    for half in halves(plain):
        assert coloured(half, THEME.anchor_tint).sum() == 0
    assert coloured(halves(plain)[0], THEME.anchor).sum() == 0


@pytest.mark.parametrize("servers", [1, 2, 3, 8, 9, 16, 17])
def test_servers_are_divided_by_the_rates(servers: int, painter: Painter) -> None:
    # Three jobs share a server, which has no room for their names; each of the others has its own.
    rates = np.concatenate([[0.5, 0.25, 0.125], np.ones(servers - 1)])
    ages = np.geomspace(5000, 2, len(rates))
    numbers = 10**6 + np.arange(len(rates))
    shown = picture(servers=servers, sizes=np.full(len(rates), 2.0), ages=ages, rates=rates, numbers=numbers)
    _, right = halves(painter.frame(shown))
    upper = right[: right.shape[0] // 2]
    row = int(coloured(upper, THEME.track).sum(axis=1).argmax())  # through the idle part
    lengths = [int(coloured(upper[row], colour).sum()) for colour in age_colours(ages[:3], (1.0, 1e4))]
    idle = int(coloured(upper[row], THEME.track).sum())
    server = sum(lengths) + idle if servers <= 16 else lengths[0] * 2
    # A line between jobs takes a pixel.
    np.testing.assert_allclose([*lengths, idle], np.multiply([0.5, 0.25, 0.125, 0.125], server), atol=3)
    assert server > 15


@pytest.mark.parametrize("busy", [0, 25, 80, 100])
def test_many_servers_share_a_bar(busy: int, painter: Painter) -> None:
    shown = picture(servers=100, sizes=np.ones(busy), rates=np.ones(busy), ages=np.full(busy, 50.0))
    _, right = halves(painter.frame(shown))
    upper = right[: right.shape[0] // 3]
    idle, whole = coloured(upper, THEME.track).sum(axis=1).max(), right.shape[1] - 2 * (THEME.margin + THEME.padding)
    assert idle == pytest.approx(whole * (1 - busy / 100), abs=6)


rates_and_servers = st.integers(1, 6).flatmap(
    lambda servers: st.tuples(st.just(servers), st.lists(st.floats(0.0, 1.0), max_size=12))
)


@given(rates_and_servers)
def test_shares_are_a_schedule(drawn: tuple[int, list[float]]) -> None:
    servers, wanted = drawn
    rates = np.array(wanted)
    if rates.sum() > servers:
        rates *= servers / rates.sum()
    Painter().frame(picture())
    from queue_env.rendering.servers_panel import shares

    found = shares(picture(servers=servers, sizes=np.ones(len(rates)), rates=rates))
    got = np.zeros(len(rates))
    for share, following in zip_longest(found, found[1:]):
        got[share.place] += share.end - share.start
        assert 0 <= share.start <= share.end <= servers
        assert share.end - share.start <= 1 + 1e-8  # so nobody is on two servers at once
        assert following is None or following.start == share.end
    np.testing.assert_allclose(got, rates, atol=1e-8)


def test_full_rates_have_a_server_each() -> None:
    Painter().frame(picture())
    from queue_env.rendering.servers_panel import shares

    found = shares(picture(servers=3, sizes=np.ones(4), rates=[0.6, 1.0, 0.4, 1.0]))
    assert [tuple(share) for share in found] == [(1, 0, 1), (3, 1, 2), (0, 2, 2.6), (2, 2.6, 3)]


# ---- the tail -----------------------------------------------------------------------------------------------


@given(st.lists(st.floats(0.0, 1e5), min_size=1, max_size=50))
def test_tail_by_column_counts(times: list[float]) -> None:
    Painter().frame(picture())
    from queue_env.rendering.tail_panel import tail_by_column

    scale = DecadeScale(-1, 3, 0, 123)
    tail = tail_by_column(np.array(times), scale, 123)
    edges = 10.0 ** (-1 + 4 * np.arange(124) / 123)
    # A time on an edge may count on either side of it.
    above = [np.mean(np.array(times) > edge * (1 + rounding)) for edge in edges for rounding in (1e-12, -1e-12)]
    assert np.all(np.array(above[0::2]) <= tail)
    assert np.all(tail <= np.array(above[1::2]))


def filled(painter: Painter, response_times: list[float]) -> NDArray[np.bool_]:
    _, right = halves(painter.frame(picture(response_times=response_times)))
    return coloured(right, THEME.curve_fill)


def test_tail_falls_where_the_response_times_are(painter: Painter) -> None:
    # The axis runs from 0.1 to 100: a third of it for each decade.
    one, ten, hundred = (int(filled(painter, [value]).sum(axis=1).max()) for value in (1.0, 10.0, 100.0))
    assert ten - one == pytest.approx(hundred / 3, abs=6)
    assert one == pytest.approx(hundred / 3, abs=6)
    # Nine of ten at 1, the others at 10: down by half of the two decades shown.
    steps = filled(painter, [1.0] * 9 + [10.0])
    heights = steps.sum(axis=0)[steps.any(axis=0)]
    assert np.median(heights[:80]) == pytest.approx(2 * np.median(heights[-80:]), rel=0.15)


def test_bound_is_drawn_where_there_is_one(painter: Painter) -> None:
    for name, there in (("bound only", True), ("usual", True), ("no bound", False), ("nothing at all", False)):
        _, right = halves(painter.frame(EXTREMES[name]))
        assert (coloured(right, THEME.bound).sum() > 100) == there


def test_bound_is_dashed_and_falls(painter: Painter) -> None:
    _, right = halves(painter.frame(EXTREMES["bound only"]))
    drawn = coloured(right, THEME.bound)[310:]  # without the legend
    columns = np.flatnonzero(drawn.any(axis=0))
    tops = drawn.argmax(axis=0)[columns]
    assert np.all(np.diff(tops) >= -1)
    assert np.sum(np.diff(columns) > 1) >= 5


# ---- speed --------------------------------------------------------------------------------------------------


def test_a_frame_is_quick(painter: Painter) -> None:
    shown = [crowd(20, 2, ages=np.full(20, 1.0 + step)) for step in range(20)]
    painter.frame(shown[0])
    taken = []
    for one in shown:
        begin = time.perf_counter()
        painter.frame(one)
        taken.append(time.perf_counter() - begin)
    assert min(taken) < 0.03  # some 6 ms on a machine that has nothing else to do
