"""The figure of a sweep: lines with bands over one axis, heat maps over two."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from queue_env.report.impatient_style import heading
from queue_env.report.style import THICK, line_style, new_figure, tidy
from queue_env.report.sweep import axis_label, measure_label, value_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.figure import Figure

    from queue_env.scoring.sweep import Sweep
    from queue_env.scoring.sweep_points import Value

__all__ = ["sweep_figure"]

FloatArray: TypeAlias = NDArray[np.float64]

_WIDE = 8.0  # largest over smallest, from which on a scale is logarithmic
_BELOW = 2.0  # the lowest number over the lower end of a logarithmic frame
_MOST_TICKS = 11
_MOST_WRITTEN = 12  # rows and columns, up to which numbers are written into a heat map
_PANELS = 3  # side by side


def sweep_figure(sweep: Sweep, title: str) -> Figure:
    """Draw a sweep over one axis or two.

    Raises:
        ImportError: matplotlib is not installed.
    """
    figure = _lines(sweep) if len(sweep.axes) == 1 else _heat_maps(sweep)
    heading(figure, title)
    return figure


# ---- one axis ------------------------------------------------------------------------------------


def _lines(sweep: Sweep) -> Figure:
    ((name, values),) = sweep.axes.items()
    figure = new_figure(8, 5)
    axes = figure.add_subplot()
    words = any(isinstance(value, str) for value in values)
    x = np.arange(len(values), dtype=np.float64) if words else np.array(values, dtype=np.float64)
    order = np.argsort(x)
    everything = np.array([sweep.values(policy) for policy in sweep.policies])
    # A logarithmic scale has no place for the zero at which intervals are cut.
    least = float(np.nanmin(everything)) / _BELOW if _wide(everything) else 0.0
    for index, policy in enumerate(sweep.policies):
        found = np.array([[one.value, max(one.low, least), one.high] for one in sweep.intervals(policy)])[order]
        style = line_style(index)
        axes.plot(x[order], found[:, 0], linewidth=THICK, marker="o", markersize=4, label=policy, **style)
        axes.fill_between(x[order], found[:, 1], found[:, 2], color=style["color"], alpha=0.18, linewidth=0)
    axes.set(xlabel=axis_label(sweep, name), ylabel=measure_label(sweep))
    if least > 0:
        axes.set(yscale="log", ylim=(least, None))
    if words:
        axes.set_xticks(x, [value_text(value) for value in values])
    elif _wide(x):
        axes.set_xscale("log")
        _ticks(axes.xaxis, values, x)
    tidy(axes)
    axes.legend(frameon=False, title="bands: 95 %")
    return figure


# ---- two axes ------------------------------------------------------------------------------------


def _heat_maps(sweep: Sweep) -> Figure:
    """A panel for each policy in one scale of colours, and of two policies the ratio."""
    maps = {policy: sweep.values(policy) for policy in sweep.policies}
    pair = len(maps) == 2
    count = len(maps) + pair
    columns = min(count, _PANELS)
    rows = -(-count // columns)
    figure = new_figure(5.4 * columns, 4.6 * rows)
    norm = _norm(np.array(list(maps.values())))
    for place, (policy, found) in enumerate(maps.items()):
        axes = figure.add_subplot(rows, columns, place + 1)
        mesh = _heat_map(axes, sweep, found, cmap="viridis", norm=norm)
        axes.set_title(policy, loc="left", fontsize=10)
        _colour_bar(figure, axes, mesh, measure_label(sweep))
    if pair:
        _draw_ratio(figure, figure.add_subplot(rows, columns, count), sweep)
    return figure


def _draw_ratio(figure: Figure, axes: Any, sweep: Sweep) -> None:
    """The second policy over the first, in colours around one; in brackets, or with a dot, where it may be chance."""
    from matplotlib.colors import LogNorm

    base, policy = sweep.policies
    intervals = sweep.ratios(policy, base)
    found = np.array([one.value for one in intervals]).reshape(sweep.shape)
    chance = np.array([not (one.low > 1 or one.high < 1) for one in intervals]).reshape(sweep.shape)
    usable = found[np.isfinite(found) & (found > 0)]
    reach = max(float(np.exp(np.abs(np.log(usable)).max(initial=0.0))), 1.01)
    mesh = _heat_map(axes, sweep, found, cmap="RdBu_r", norm=LogNorm(1 / reach, reach), bracketed=chance)
    axes.set_title(f"{policy} / {base}; (…) or dot: the 95 % interval holds 1", loc="left", fontsize=10)
    _colour_bar(figure, axes, mesh, "ratio [1]")


def _colour_bar(figure: Figure, axes: Any, mesh: Any, label: str) -> None:
    from matplotlib.ticker import MaxNLocator, NullLocator

    bar = figure.colorbar(mesh, ax=axes, label=label)
    if mesh.norm.vmax < 100 * mesh.norm.vmin:  # so that few powers of ten are among them
        bar.ax.yaxis.set_major_locator(MaxNLocator(8))
        bar.ax.yaxis.set_minor_locator(NullLocator())
        bar.ax.yaxis.set_major_formatter("{x:g}")


def _heat_map(
    axes: Any, sweep: Sweep, found: FloatArray, *, bracketed: NDArray[np.bool_] | None = None, **colours: Any
) -> Any:
    """Draw cells of one size, the first axis to the right and the second upwards."""
    (right, columns), (up, rows) = sweep.axes.items()
    x, y = np.arange(len(columns), dtype=np.float64), np.arange(len(rows), dtype=np.float64)
    mesh = axes.pcolormesh(x, y, np.ma.masked_invalid(found.T), shading="nearest", **colours)
    axes.set(xlabel=axis_label(sweep, right), ylabel=axis_label(sweep, up))
    _ticks(axes.xaxis, columns, x)
    _ticks(axes.yaxis, rows, y)
    if max(found.shape) <= _MOST_WRITTEN:
        for (i, j), value in np.ndenumerate(found):
            text = f"{value:.3g}"
            if bracketed is not None and bracketed[i, j]:
                text = f"({text})"
            red, green, blue, _ = mesh.cmap(mesh.norm(value))
            dark = 0.3 * red + 0.6 * green + 0.1 * blue < 0.5
            axes.text(i, j, text, ha="center", va="center", fontsize=7, color="white" if dark else "black")
    elif bracketed is not None:
        axes.plot(*np.nonzero(bracketed), ".", color="#555555", markersize=3)
    return mesh


def _ticks(axis: Any, values: Sequence[Value], places: FloatArray) -> None:
    """Write some of the values at their places, and nothing between."""
    from matplotlib.ticker import NullLocator

    every = -(-len(values) // _MOST_TICKS)
    axis.set_ticks(places[::every], [value_text(value) for value in values[::every]])
    axis.set_minor_locator(NullLocator())


def _norm(found: FloatArray) -> Any:
    from matplotlib.colors import LogNorm, Normalize

    usable = found[np.isfinite(found)]
    if not usable.size:
        return Normalize(0.0, 1.0)
    kind = LogNorm if _wide(found) else Normalize
    low, high = float(usable.min()), float(usable.max())
    return kind(low, high if high > low else math.nextafter(high, math.inf))


def _wide(numbers: FloatArray) -> bool:
    """Whether numbers are better shown on a logarithmic scale."""
    usable = numbers[np.isfinite(numbers)]
    return bool(usable.size) and float(usable.min()) > 0 and float(usable.max()) >= _WIDE * float(usable.min())
