"""Frames without a display, the window, copies of painters, and what is said where pygame is missing."""

from __future__ import annotations

import copy
import os
import pickle
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from gymnasium.error import DependencyNotInstalled
from pictures import EXTREMES, Frame

from queue_env.rendering import Painter

ROOT = Path(__file__).parent.parent


def run(code: str, *path: Path, **environment: str) -> str:
    """Run Python with warnings as errors, without a display and without SDL's variables."""
    kept = {
        key: value
        for key, value in os.environ.items()
        if not key.startswith(("SDL", "PYGAME")) and "DISPLAY" not in key
    }
    kept["PYTHONPATH"] = os.pathsep.join(map(str, (ROOT, ROOT / "tests", *path)))
    command = [sys.executable, "-W", "error", "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, env={**kept, **environment}, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_frames_need_no_display() -> None:
    code = """
import hashlib
from queue_env.rendering import Painter
from pictures import EXTREMES
frame = Painter().frame(EXTREMES["usual"])
import pygame
print(frame.shape, pygame.display.get_init(), hashlib.sha256(frame.tobytes()).hexdigest())
"""
    first, second = run(code), run(code)
    assert first.startswith("(600, 960, 3) False ")  # and no greeting before it
    assert first == second


def test_importing_loads_no_pygame() -> None:
    code = """
import sys
from queue_env.rendering import Painter, draw_text
from pictures import EXTREMES
Painter()
draw_text(EXTREMES["usual"])
print("pygame" in sys.modules)
"""
    assert run(code).strip() == "False"


def test_the_known_warning_of_the_import_is_silenced_and_no_other(tmp_path: Path) -> None:
    code = """
from queue_env.rendering import Painter
from pictures import EXTREMES
try:
    print(Painter().frame(EXTREMES["usual"]).shape)
except UserWarning as warning:
    print(warning)
"""
    module = tmp_path / "pkg_resources.py"
    for message, kind, printed in (
        (
            "pkg_resources is deprecated as an API. See https://setuptools.pypa.io",
            "DeprecationWarning",
            "(600, 960, 3)",
        ),
        ("pkg_resources is deprecated as an API. See https://setuptools.pypa.io", "UserWarning", "(600, 960, 3)"),
        ("something else", "UserWarning", "something else"),
    ):
        module.write_text(
            f"import warnings\nwarnings.warn({message!r}, {kind})\nresource_exists = resource_stream = None\n"
        )
        module.write_text(module.read_text().replace("= None", "= lambda *names: False"))
        assert run(code, tmp_path, PYTHONDONTWRITEBYTECODE="1").strip() == printed


def test_without_pygame(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pygame", None)
    for draw in (Painter().frame, Painter().show):
        with pytest.raises(DependencyNotInstalled, match=r'pip install "queue-env\[render\]"'):
            draw(EXTREMES["usual"])
    Painter().close()


@pytest.fixture
def window(monkeypatch: pytest.MonkeyPatch) -> Iterator[Painter]:
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")
    shown = Painter((640, 400), fps=200)
    yield shown
    shown.close()


def on_screen() -> Frame:
    import pygame

    return np.ascontiguousarray(pygame.surfarray.array3d(pygame.display.get_surface()).transpose(1, 0, 2))


def test_window_shows_the_frame(window: Painter) -> None:
    for name in ("usual", "no jobs"):
        window.show(EXTREMES[name])
        assert np.array_equal(on_screen(), window.frame(EXTREMES[name]))
    import pygame

    assert pygame.display.get_caption()[0] == "high-load-2"
    window.close()
    assert not pygame.display.get_init()
    window.close()
    window.show(EXTREMES["usual"])
    assert np.array_equal(on_screen(), window.frame(EXTREMES["usual"]))


def test_window_closed_by_its_user(window: Painter) -> None:
    import pygame

    window.show(EXTREMES["usual"])
    pygame.event.post(pygame.event.Event(pygame.KEYDOWN, key=pygame.K_a))
    pygame.event.post(pygame.event.Event(pygame.QUIT))
    window.show(EXTREMES["usual"])
    assert not pygame.display.get_init()
    window.show(EXTREMES["usual"])
    assert not pygame.display.get_init()
    assert window.frame(EXTREMES["usual"]).any()
    window.close()
    window.show(EXTREMES["usual"])
    assert pygame.display.get_init()


def test_window_leaves_other_events_alone(window: Painter) -> None:
    import pygame

    window.show(EXTREMES["usual"])
    pygame.event.clear()
    pygame.event.post(pygame.event.Event(pygame.KEYDOWN, key=pygame.K_a))
    window.show(EXTREMES["usual"])
    assert [event.key for event in pygame.event.get(pygame.KEYDOWN)] == [pygame.K_a]


def test_two_windows_do_not_break_each_other(window: Painter) -> None:
    other = Painter((700, 500), fps=200)
    for shown in (window, other, window, other):
        shown.show(EXTREMES["usual"])
        assert np.array_equal(on_screen(), shown.frame(EXTREMES["usual"]))
    window.close()  # which is not on the screen any more
    other.show(EXTREMES["no jobs"])
    assert np.array_equal(on_screen(), other.frame(EXTREMES["no jobs"]))
    other.close()


def test_somebody_elses_quit_does_no_harm(window: Painter) -> None:
    window.show(EXTREMES["usual"])
    before = window.frame(EXTREMES["usual"])
    import pygame

    pygame.quit()
    assert np.array_equal(window.frame(EXTREMES["usual"]), before)
    pygame.quit()
    pygame.init()
    assert np.array_equal(window.frame(EXTREMES["usual"]), before)
    pygame.quit()
    window.show(EXTREMES["usual"])
    assert np.array_equal(on_screen(), before)


def test_window_keeps_to_its_frames_a_second(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")
    slow = Painter((640, 400), fps=20)
    slow.show(EXTREMES["usual"])
    begin = time.perf_counter()
    for _ in range(3):
        slow.show(EXTREMES["usual"])
    assert time.perf_counter() - begin > 0.1
    slow.close()


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda painter: pickle.loads(pickle.dumps(painter))])
def test_copies(copied: Any, window: Painter) -> None:
    window.show(EXTREMES["usual"])
    other = copied(window)
    assert (other.size, other.fps) == ((640, 400), 200)
    assert np.array_equal(other.frame(EXTREMES["usual"]), window.frame(EXTREMES["usual"]))
    other.close()
    window.show(EXTREMES["no jobs"])  # closing the copy has not closed the window
    assert np.array_equal(on_screen(), window.frame(EXTREMES["no jobs"]))


def test_pictures_can_be_copied() -> None:
    painter = Painter()
    for other in (copy.deepcopy(EXTREMES["usual"]), pickle.loads(pickle.dumps(EXTREMES["usual"]))):
        assert np.array_equal(painter.frame(other), painter.frame(EXTREMES["usual"]))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"size": (639, 400)}, r"painter: size must be at least \(640, 400\), got \(639, 400\)"),
        ({"size": (640, 0)}, "painter: size must be"),
        ({"fps": 0}, "painter: fps must be > 0, got 0"),
    ],
)
def test_painter_refuses(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Painter(**arguments)
