"""A hook of the site: takes in pages that lie outside docs/, and makes links to them and from them fit.

Links are written as the files lie in the checkout, so that they work there too.
"""

from __future__ import annotations

import os.path
import re
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parent.parent
PLACES = {
    "README.md": "index.md",
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "LICENSE": "LICENSE",
    "CITATION.cff": "CITATION.cff",
    "baselines/results/scoreboard.md": "baselines/results/scoreboard.md",
    "baselines/results/scoreboard.html": "baselines/results/scoreboard.html",
}
LINK = re.compile(r"(?<=\]\()[^)\s#:]+")
HREF = re.compile(r'(?<=href=")[^"#:]+')


def on_files(files: Files, *, config: MkDocsConfig) -> Files:
    """Add the files from elsewhere."""
    for source, place in PLACES.items():
        files.append(File.generated(config, place, abs_src_path=str(ROOT / source)))
    return files


def on_page_markdown(markdown: str, *, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Turn links between files of the checkout into links between places of the site."""
    here = page.file.src_uri
    source = next((name for name, place in PLACES.items() if place == here), f"docs/{here}")

    def moved(link: re.Match[str]) -> str:
        target = os.path.normpath(os.path.join(os.path.dirname(source), link[0]))
        place = PLACES.get(target, target.removeprefix("docs/"))
        there = files.get_file_from_path(place) is not None
        return os.path.relpath(place, os.path.dirname(here) or ".") if there else link[0]

    return LINK.sub(moved, markdown)


def on_page_content(html: str, *, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Turn the links of a notebook, which come as they are written, into links between places of the site."""
    here = page.file.src_uri
    if not here.endswith(".ipynb"):
        return html

    def moved(link: re.Match[str]) -> str:
        target = files.get_file_from_path(os.path.normpath(os.path.join(os.path.dirname(here), link[0])))
        return link[0] if target is None else target.url_relative_to(page.file)

    return HREF.sub(moved, html)
