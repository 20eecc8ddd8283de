"""Schedule a queue with n servers, and be scored on the tail of response time."""

from queue_env._version import __version__

__all__ = ["__version__"]
