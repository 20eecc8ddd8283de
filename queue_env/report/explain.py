"""What a policy with an anchor does, drawn, as tables and as CSV."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from queue_env.report.impatient_style import heading, plain_csv
from queue_env.report.style import line_style, new_figure, tidy
from queue_env.report.table import Table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from queue_env.explain import Distilled, Effect, RateMap, States

__all__ = [
    "effects_csv",
    "effects_table",
    "map_csv",
    "maps_figure",
    "rules_table",
    "shares",
    "shares_table",
    "structure_figure",
]

FloatArray: TypeAlias = NDArray[np.float64]

AXES = {
    "anchor_size": "anchor's original size z",
    "others_work": "others' work b",
    "anchor_remaining": "anchor's remaining size r",
    "next_remaining": "next job's remaining size p",
}
LOW, HIGH = 0.1, 0.9
"""A rate below or above counts as zero or one in the shares of time."""

_COLOURS = "cividis"  # even in lightness, for colour-blind readers too
_NOWHERE, _HALF = "#f0f0f0", "#D55E00"  # cells without a rate, and the line where it is 1/2
_FAINT = 0.35  # opacity of cells that the policy does not visit
_TICKS = (0, 0.25, 0.5, 0.75, 1)
_COLUMNS = ("visits", "mean rate")


# ---- figures -------------------------------------------------------------------------------------


def maps_figure(found: RateMap, title: str) -> Figure:
    """Draw the rates of all laws of a map, the panels side by side, with the line where each is 1/2.

    Cells that the first policy does not visit are grey, or pale where a law of the axes alone has a rate there.

    Raises:
        ImportError: matplotlib is not installed.
    """
    figure = new_figure(1.6 + 4.1 * len(found.rates), 4.6)
    panels = figure.subplots(1, len(found.rates), sharex=True, sharey=True, squeeze=False)[0]
    for axes, (label, rates) in zip(panels, found.rates.items(), strict=True):
        shades = _draw_map(axes, found, rates)
        axes.set_title(label, loc="left", fontsize=10)
        axes.set_xlabel(f"{AXES[found.axes[0]]} [mean sizes]")
    panels[0].set_ylabel(f"{AXES[found.axes[1]]} [mean sizes]")
    figure.colorbar(shades, ax=list(panels), label="anchor's rate [1]", ticks=_TICKS)
    heading(figure, title)
    return figure


def structure_figure(found: RateMap, effects: Sequence[Effect], title: str) -> Figure:
    """Draw the first law of a map, and beside it the importance of the features.

    Raises:
        ImportError: matplotlib is not installed.
    """
    figure = new_figure(11, 4.6)
    left, right = figure.subplots(1, 2)
    shades = _draw_map(left, found, next(iter(found.rates.values())))
    left.set_xlabel(f"{AXES[found.axes[0]]} [mean sizes]")
    left.set_ylabel(f"{AXES[found.axes[1]]} [mean sizes]")
    figure.colorbar(shades, ax=left, label="anchor's rate [1]", ticks=_TICKS)
    places = np.arange(len(effects))
    colours = [_colour(effect) for effect in effects]
    right.barh(places, [effect.importance for effect in effects], color=colours)
    right.set_yticks(places, [effect.feature for effect in effects])
    right.invert_yaxis()
    right.set_xlabel("mean change of the rate, the feature shuffled [1]")
    tidy(right)
    _direction_legend(right, effects)
    heading(figure, title)
    return figure


def _draw_map(axes: Any, found: RateMap, rates: FloatArray) -> Any:
    """Draw one map; returns the scale of its colours."""
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import Normalize

    axes.set(xscale="log", yscale="log", facecolor=_NOWHERE)
    shown, scale = np.ma.masked_invalid(rates), ScalarMappable(Normalize(0.0, 1.0), _COLOURS)
    alpha = np.where(found.visited, 1.0, _FAINT)
    axes.pcolormesh(*found.edges, shown, alpha=alpha, cmap=scale.cmap, norm=scale.norm, rasterized=True)
    if shown.min() < 0.5 < shown.max():
        middles = [np.sqrt(ends[1:] * ends[:-1]) for ends in found.edges]
        axes.contour(*middles, shown, levels=[0.5], colors=_HALF, linewidths=1.6)
    return scale


def _colour(effect: Effect) -> str:
    if effect.slope is None:
        return "#777777"
    return str(line_style(0 if effect.slope > 0 else 1)["color"])


def _direction_legend(axes: Any, effects: Sequence[Effect]) -> None:
    """Say which colour is of features that raise the rate on average, where that is known."""
    if any(effect.slope is None for effect in effects):
        return
    from matplotlib.patches import Patch

    names = ("raises the rate on average", "lowers it")
    handles = [Patch(color=line_style(i)["color"], label=name) for i, name in enumerate(names)]
    axes.legend(handles=handles, loc="lower right", frameon=False, fontsize=9)


# ---- tables --------------------------------------------------------------------------------------


def shares(states: States) -> dict[str, float]:
    """The shares of time in which the anchor's rate is near zero, between, near one, and one as all have a server."""
    low, high = int(np.sum(states.rates < LOW)), int(np.sum(states.rates > HIGH))
    counts = {
        "near zero": low,
        "between": len(states.rates) - low - high,
        "near one": high,
        "no more jobs than servers": states.looks - len(states.rates),
    }
    return {name: count / states.looks for name, count in counts.items()}


def shares_table(states: States) -> Table:
    """A table of `shares`."""
    title = f"Anchor's rate: below {LOW:g}, between, above {HIGH:g}, over all states that arriving jobs find"
    return Table(title, ("rate", "share"), tuple(shares(states).items()))


def effects_table(effects: Sequence[Effect]) -> Table:
    """A table of the features."""
    title = "Features: mean change of the rate if shuffled, mean slope of the logit, standard deviation"
    rows = tuple((effect.feature, effect.importance, effect.slope, effect.spread) for effect in effects)
    return Table(title, ("feature", "importance", "slope", "spread"), rows)


def rules_table(rules: Sequence[Distilled]) -> Table:
    """A table of fitted rules."""
    title = "Rules fitted: rate = 1/(1 + e^-y), in mean sizes z the anchor's size, b the others' work, r and p what "
    title += "remains of the anchor and of the next job"
    columns = ("rule", "R²", "mean difference", "parameters", "y")
    rows = tuple((rule.form, rule.r2, rule.difference, len(rule.parameters), rule.formula) for rule in rules)
    return Table(title, columns, rows)


# ---- CSV -----------------------------------------------------------------------------------------


def map_csv(found: RateMap) -> str:
    """A map as CSV: a line for each cell with its middle, visits, mean rate, and the rate of each law."""
    middles = [np.sqrt(ends[1:] * ends[:-1]) for ends in found.edges]
    columns = [np.tile(middles[0], len(middles[1])), np.repeat(middles[1], len(middles[0]))]
    columns += [part.ravel() for part in (found.visits, found.mean, *found.rates.values())]
    rows = [[_blank(value) for value in row] for row in zip(*(part.tolist() for part in columns), strict=True)]
    return plain_csv((*found.axes, *_COLUMNS, *found.rates), rows)


def effects_csv(effects: Sequence[Effect]) -> str:
    """The features as CSV."""
    rows = [(effect.feature, effect.importance, effect.slope, effect.spread) for effect in effects]
    return plain_csv(("feature", "importance", "slope", "spread"), rows)


def _blank(value: float) -> float | None:
    return None if value != value else value
