"""The figures of normalised tails far out: of scores, and of the tails that two sources make up."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from queue_env.report.style import RATIO_LABEL, THICK, draw_bound, line_style, new_figure, set_plain_ticks, tidy

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from queue_env.scoring.figure_data import JoinedTail
    from queue_env.scoring.score import Scores

__all__ = ["joined_tails_csv", "joined_tails_figure", "score_figure"]

FloatArray: TypeAlias = NDArray[np.float64]

FRAME = 5.0
"""The frame holds normalised tails up to here, and curves that rise higher leave it."""

PLAIN_TICKS_BELOW = 100
"""Ticks are 0.5, 1, 2, 3 up to this ratio of the frame's ends, powers of ten from there."""

_LEAST = 1e-3  # lowest end of the frame
_COLUMNS = ("scenario", "policy", "source", "t", "tail", "R", "low", "high")


def score_figure(scores: Scores, title: str) -> Figure:
    """Draw the normalised tails of scored policies, with 95 % bands, and marks at the decades.

    Raises:
        ImportError: matplotlib is not installed.
    """
    figure = new_figure(9, 5)
    axes = _axes(figure.add_subplot(), title)
    shown = [row for row in scores if row.estimate is not None]
    curves = [row.scaled_curve for row in shown]
    top = _top([curve[:, 1] for curve in curves], [curve[:, 3] for curve in curves])
    for index, (row, curve) in enumerate(zip(shown, curves, strict=True)):
        t, value, low, high = curve.T
        marks = np.flatnonzero(np.isin(row.curve[:, 0], row.t)).tolist()
        label = _label(row.policy, t, value, top)
        _draw(axes, label, index, t, (value, low, high), top, marker="o", markevery=marks)
    draw_bound(axes)
    _finish(axes, top)
    axes.legend(loc="center left", bbox_to_anchor=(1.01, 0.5), frameon=False)
    return figure


def joined_tails_figure(panels: Mapping[str, Sequence[JoinedTail]]) -> Figure:
    """Draw one panel for each scenario: plain runs as lines, the decomposition's points beyond, 95 % bands.

    Args:
        panels: the tails of all policies of a scenario, by the title of the panel.

    Raises:
        ImportError: matplotlib is not installed.
    """
    figure = new_figure(8 * len(panels), 6.5)
    for place, (title, tails) in enumerate(panels.items()):
        axes = _axes(figure.add_subplot(1, len(panels), place + 1), title)
        everything = [_joined(tail) for tail in tails]
        top = _top([value for _, value, _ in everything], [high for _, _, high in everything])
        for index, (tail, (t, value, _)) in enumerate(zip(tails, everything, strict=True)):
            _draw_joined(axes, tail, _label(tail.policy, t, value, top), index, top)
        draw_bound(axes)
        _finish(axes, top)
        axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.12), ncols=2, frameon=False, fontsize=9)
    return figure


def joined_tails_csv(scenarios: Mapping[str, Sequence[JoinedTail]]) -> str:
    """All points as CSV, also those of the decomposition that are not drawn; t is in mean service times.

    Args:
        scenarios: the tails of all policies of a scenario, by its name.
    """
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(_COLUMNS)
    for name, tails in scenarios.items():
        for tail in tails:
            for source, points in (("plain run", tail.plain), ("decomposition", tail.decomposition)):
                columns = (points.t, points.tail, points.value, points.low, points.high)
                rows = zip(*(column.tolist() for column in columns), strict=True)
                writer.writerows((name, tail.policy, source, *row) for row in rows)
    return text.getvalue()


# ---- one curve -----------------------------------------------------------------------------------


def _joined(tail: JoinedTail) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return t, R(t) and the upper ends of what is drawn, each (points,)."""
    parts = (tail.plain, tail.beyond)
    t, value, high = (np.concatenate([getattr(part, name) for part in parts]) for name in ("t", "value", "high"))
    return t, value, high


def _draw_joined(axes: Any, tail: JoinedTail, label: str, index: int, top: float) -> None:
    plain, beyond = tail.plain, tail.beyond
    _draw(axes, label, index, plain.t, (plain.value, plain.low, plain.high), top)
    # From the end of the plain run on, so that a curve has no gap; markers are at the decomposition's points only.
    joint = [np.concatenate([getattr(plain, n)[-1:], getattr(beyond, n)]) for n in ("t", "value", "low", "high")]
    marks = range(len(joint[0]) - len(beyond.t), len(joint[0]))
    curve = (joint[1], joint[2], joint[3])
    _draw(axes, "_" + label, index, joint[0], curve, top, marker="o", markevery=list(marks))


def _draw(
    axes: Any,
    label: str,
    index: int,
    t: FloatArray,
    curve: tuple[FloatArray, FloatArray, FloatArray],
    top: float,
    **marks: Any,
) -> None:
    """Draw a line, its value, and the band between low and high, which ends where the line leaves the frame."""
    style = line_style(index)
    value, low, high = curve
    axes.plot(t, value, linewidth=THICK, label=label, markersize=4, **style, **marks)
    inside = value <= top
    inside[1:] |= value[:-1] <= top
    inside[:-1] |= value[1:] <= top
    axes.fill_between(t, low, high, where=inside.tolist(), color=style["color"], alpha=0.18, linewidth=0)


# ---- the frame -----------------------------------------------------------------------------------


def _axes(axes: Any, title: str) -> Any:
    axes.set(xscale="log", yscale="log", xlabel="response time t [mean service times]")
    axes.set_ylabel(f"R(t) = {RATIO_LABEL} [1]")
    axes.set_title(title, loc="left", fontsize=10)
    return axes


def _top(values: Sequence[FloatArray], highs: Sequence[FloatArray]) -> float:
    """Return the upper end of the frame: it holds all curves up to `FRAME`, or at least the lowest of them."""
    peaks = [float(np.max(value)) for value in values if value.size]
    inside = [float(np.max(high)) for value, high in zip(values, highs, strict=True) if _stays(value)]
    if not inside:
        return 1.15 * max(min(peaks, default=1.0), 1.0)
    return max(1.1 * min(max(inside), FRAME), 1.15 * max(peak for peak in peaks if peak <= FRAME), 1.15)


def _stays(value: FloatArray) -> bool:
    return bool(value.size) and float(np.max(value)) <= FRAME


def _label(policy: str, t: FloatArray, value: FloatArray, top: float) -> str:
    """The policy, and how high it rises where that is outside of the frame."""
    if not value.size or float(np.max(value)) <= top:
        return policy
    peak = int(np.argmax(value))
    return f"{policy} (leaves the frame: {value[peak]:.3g} at t = {t[peak]:.3g})"


def _finish(axes: Any, top: float) -> None:
    heights = [line.get_ydata() for line in axes.lines if np.size(line.get_ydata())]
    seen = np.concatenate([np.asarray(height, dtype=np.float64) for height in heights])
    bottom = max(float(seen[seen > 0].min()) / 1.15, _LEAST)
    axes.set_ylim(bottom, top)
    tidy(axes)
    if top / bottom < PLAIN_TICKS_BELOW:
        set_plain_ticks(axes.yaxis)
