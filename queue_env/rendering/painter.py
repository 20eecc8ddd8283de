"""Frames and a window with pygame, which is imported when the first frame is drawn."""

from __future__ import annotations

import os
import warnings
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np
from gymnasium.error import DependencyNotInstalled
from numpy.typing import NDArray

from queue_env.distributions.checks import refuse
from queue_env.rendering.picture import Picture
from queue_env.rendering.theme import THEME

if TYPE_CHECKING:
    from queue_env.rendering.scene import Scene

__all__ = ["Painter"]


class Painter:
    """Draws pictures as frames, or in a window.

    A frame depends on the picture and the size only, and needs no display. Copies and pickles keep the
    arguments, but no window.

    Args:
        size: width and height in pixels.
        fps: frames a second, at most, in the window.

    Raises:
        ValueError: the size is too small for text that can be read, or fps is not positive.
    """

    _scene: Scene | None
    _window: Any
    _clock: Any
    _dismissed: bool

    def __init__(self, size: tuple[int, int] = THEME.base, fps: int = 30) -> None:
        width, height = size
        if width < THEME.least[0] or height < THEME.least[1]:
            refuse("painter", "size", f"at least {THEME.least}", size)
        if not fps > 0:
            refuse("painter", "fps", "> 0", fps)
        self.size = (int(width), int(height))
        self.fps = fps
        self._forget()

    def frame(self, picture: Picture) -> NDArray[np.uint8]:
        """Draw a frame: uint8, shape (height, width, 3), a new array at each call.

        Raises:
            DependencyNotInstalled: pygame is not installed.
        """
        return self._drawn(picture).canvas.pixels.copy()

    def show(self, picture: Picture) -> None:
        """Draw a picture in the window, which opens with the first one; waits as `fps` wants it.

        Once somebody has closed the window, later calls do nothing, until `close`.

        Raises:
            DependencyNotInstalled: pygame is not installed.
        """
        if self._dismissed:
            return
        pygame = _load_pygame()
        scene = self._drawn(picture)
        # pygame has one window. Another painter may have changed its size, or somebody may have closed it.
        window = pygame.display.get_surface()
        if window is None or window is not self._window or window.get_size() != self.size:
            pygame.display.init()
            self._window = pygame.display.set_mode(self.size)
            self._clock = pygame.time.Clock()
        pygame.display.set_caption(picture.title)
        self._window.blit(scene.canvas.surface, (0, 0))
        pygame.display.flip()
        self._clock.tick(self.fps)
        if pygame.event.get(pygame.QUIT):
            self.close()
            self._dismissed = True

    def close(self) -> None:
        """Close the window, if there is one; the painter can be used again."""
        if self._window is not None:
            pygame = _load_pygame()
            if pygame.display.get_init() and pygame.display.get_surface() is self._window:
                pygame.display.quit()
        self._forget()

    def __getstate__(self) -> dict[str, Any]:
        return {"size": self.size, "fps": self.fps}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._forget()

    def _forget(self) -> None:
        self._scene = None
        self._window = None
        self._clock = None
        self._dismissed = False

    def _drawn(self, picture: Picture) -> Scene:
        if self._scene is None:
            _load_pygame()
            from queue_env.rendering.scene import Scene

            self._scene = Scene(self.size)
        self._scene.draw(picture)
        return self._scene


def _load_pygame() -> ModuleType:
    """Import pygame, without its greeting and without the one warning that its import is known to give."""
    os.environ.setdefault("PYGAME_HIDE_SUPPORT_PROMPT", "1")
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="pkg_resources is deprecated as an API")
        try:
            import pygame
        except ImportError as error:
            raise DependencyNotInstalled(
                'render_mode "rgb_array" and "human" need pygame: pip install "queue-env[render]"'
            ) from error
    return pygame
