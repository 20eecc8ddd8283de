"""The scoreboard as one page of HTML: tables, and tail curves whose values show under the pointer."""

from __future__ import annotations

import html
import json
from collections.abc import Mapping
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from queue_env.report import Table, html_table, line_style

if TYPE_CHECKING:
    from queue_env.scoring.score import Score, Scores

__all__ = ["page"]

DASHES = {"-": "", "--": "6 4", ":": "2 3"}


def page(headings: Mapping[str, str], tables: Mapping[str, Table], found: Mapping[str, Scores], command: str) -> str:
    """Return the page, which needs nothing from the network.

    Args:
        headings: of the scenarios, by name.
        tables: the same.
        found: the same.
        command: that makes it.
    """
    names = dict.fromkeys(row.policy for scores in found.values() for row in scores)
    styles = {policy: _style(index) for index, policy in enumerate(names)}
    sections, curves = [], {}
    for name, scores in found.items():
        shown = [_curve(row, styles) for row in scores if row.estimate is not None]
        chart = f'<div class="chart" data-scenario="{html.escape(name)}"></div>' if shown else ""
        heading = f"<h2>{html.escape(name)}</h2><p>{html.escape(headings[name])}</p>"
        sections.append(f"<section>{heading}{chart}<div class='scroll'>{html_table(tables[name])}</div></section>")
        curves[name] = shown
    # A script ends at the first "</", wherever that is.
    data = json.dumps(curves, allow_nan=False).replace("</", "<\\/")
    template = (files("baselines") / "scoreboard_page.html").read_text(encoding="utf-8")
    for mark, text in (("COMMAND", html.escape(command)), ("SECTIONS", "".join(sections)), ("CURVES", data)):
        template = template.replace(f"@{mark}@", text)
    return template


def _style(index: int) -> dict[str, str]:
    style = line_style(index)
    return {"color": style["color"], "dash": DASHES[style["linestyle"]]}


def _curve(row: Score, styles: Mapping[str, dict[str, str]]) -> dict[str, Any]:
    t, value, low, high = row.scaled_curve.T
    seen = value > 0
    columns = {"t": t, "value": value, "low": low, "high": high}
    return {"policy": row.policy, **styles[row.policy]} | {
        key: [float(f"{number:.5g}") for number in column[seen].tolist()] for key, column in columns.items()
    }
