"""What an environment shows of itself: a text, or pictures drawn with pygame."""

from queue_env.rendering.painter import Painter
from queue_env.rendering.picture import Picture
from queue_env.rendering.text import draw_text

__all__ = ["Painter", "Picture", "draw_text"]
