"""Makes the drawings in docs/figures, in seconds: `python docs/make_figures.py`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

import queue_env

FOLDER = Path(__file__).parent / "figures"
BLUE, ORANGE, GREEN, BLACK = "#0072B2", "#D55E00", "#009E73", "#000000"
LEVEL = 2  # b of the blocks


def patience_clocks() -> Figure:
    """What the three clocks of job 0 read: one server, PS, two jobs of size 2, patience 1.5 (docs/model.md)."""
    workload = queue_env.Workload(arrival_times=[0, 0], sizes=[2, 2], patience=[1.5, 9])
    figure, axes = _axes(height=2.6)
    for clock, speed, color in (("queue", 0.0, BLUE), ("fractional", 0.5, ORANGE), ("sojourn", 1.0, GREEN)):
        records = queue_env.simulate(workload, "ps", servers=1, clock=clock, records=True).records
        assert records is not None
        end, served = records["departure_time"][0], records["outcome"][0] == 0
        axes.plot([0, end], [0, speed * end], color=color, label=clock)
        axes.plot(end, speed * end, "o" if served else "x", color=color)
    axes.axhline(1.5, color=BLACK, linestyle=":", linewidth=1)
    axes.text(0.03, 1.54, "patience", fontsize=8)
    axes.set(xlabel="time", ylabel="clock of job 0 [time]", xlim=(0, 4.2), ylim=(-0.08, 1.8))
    axes.legend(frameon=False, loc="center right", title="cross: leaves\ndot: is served")
    return figure


def blocks() -> Figure:
    """Blocks of arrivals under SRPT, and the largest job of each, on the first jobs of high-load-2."""
    records = queue_env.simulate("high-load-2", "srpt", jobs=60, seed=9, records=True).records
    assert records is not None
    figure, axes = _axes(height=3.2)
    times = np.sort(np.concatenate([records["arrival_time"], records["departure_time"]]))
    axes.step(times, _present(records, times), where="post", color=BLACK, linewidth=0.8)
    for index, (first, last) in enumerate(_blocks(records)):
        begin, end = records["arrival_time"][[first, last + 1]]
        axes.axvspan(begin, end, color=BLUE, alpha=0.12 if index % 2 else 0.3, linewidth=0)
        largest = first + int(np.argmax(records["size"][first : last + 1]))
        there = records["arrival_time"][largest], records["departure_time"][largest]
        axes.plot(there, [-0.7, -0.7], color=ORANGE, linewidth=3, solid_capstyle="butt")
    axes.axhline(LEVEL + 0.5, color=BLACK, linestyle=":", linewidth=1)
    axes.set(xlabel="time [mean service times]", ylabel="jobs present", xlim=(0, records["arrival_time"][-1]))
    axes.set_yticks(range(7))
    axes.set_title("shaded: blocks; orange: their largest jobs; dotted: b = 2", fontsize=9, loc="left")
    return figure


def _blocks(records: dict[str, NDArray[Any]]) -> list[tuple[int, int]]:
    """The first and the last job of each block: it ends when b are left, and its largest job is not among them."""
    found, first = [], 0
    arrival, departure, size = records["arrival_time"], records["departure_time"], records["size"]
    for last in range(len(arrival) - 1):
        largest = first + int(np.argmax(size[first : last + 1]))
        ends = np.sort(departure[(departure > arrival[last]) & (departure < arrival[last + 1])])
        left = np.array([(arrival <= time).sum() - (departure <= time).sum() for time in ends])
        if np.any((left == LEVEL) & (ends >= departure[largest])):
            found.append((first, last))
            first = last + 1
    return found


def _present(records: dict[str, NDArray[Any]], times: NDArray[np.float64]) -> NDArray[np.intp]:
    """Jobs present just after each time."""
    arrived = np.searchsorted(records["arrival_time"], times, "right")
    return arrived - np.searchsorted(np.sort(records["departure_time"]), times, "right")


def _axes(height: float) -> tuple[Figure, Axes]:
    figure = Figure(figsize=(7, height), layout="constrained")
    axes = figure.add_subplot()
    axes.spines[["top", "right"]].set_visible(False)
    return figure, axes


def main(folder: Path = FOLDER) -> None:
    """Write all figures."""
    # The same bytes every time, and words as words.
    with mpl.rc_context({"svg.hashsalt": "queue-env", "svg.fonttype": "none"}):
        for draw in (patience_clocks, blocks):
            draw().savefig(folder / f"{draw.__name__.replace('_', '-')}.svg", metadata={"Date": None})


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
