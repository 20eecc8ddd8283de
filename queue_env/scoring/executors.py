"""Where replications and points of sweeps are computed: on threads of this machine, or on a Ray cluster."""

from __future__ import annotations

import os
from collections.abc import Iterator
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import contextmanager
from typing import TypeAlias

__all__ = ["Cluster", "cluster", "open_pool"]

Cluster: TypeAlias = bool | str | None
"""Which Ray cluster: its address; True for a running one or else one on this machine; None or False for threads."""


@contextmanager
def cluster(ray: Cluster) -> Iterator[None]:
    """Stay connected to a cluster, if one is given, over several runs.

    Raises:
        ImportError, ConnectionError: as `open_pool`.
    """
    if not ray:
        yield
        return
    from queue_env.scoring.ray_pool import connected

    with connected(ray):
        yield


@contextmanager
def open_pool(threads: int | None, ray: Cluster) -> Iterator[Executor]:
    """Yield what runs functions: results do not depend on which it is.

    Args:
        threads: of this machine; one for each core if not given.
        ray: a cluster in place of them.

    Raises:
        ImportError: Ray is needed and not installed.
        ConnectionError: there is no such cluster.
    """
    if not ray:
        with ThreadPoolExecutor(threads or os.cpu_count() or 1) as pool:
            yield pool
        return
    from queue_env.scoring.ray_pool import RayPool

    with cluster(ray), RayPool() as remote:
        yield remote
