"""The ids under which Gymnasium makes the environments.

Nothing here imports Gymnasium, so that what does not use it, such as the command line's help, does not wait for it.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from types import ModuleType

__all__ = ["IDS", "register_when_gymnasium_is_there"]

_ENTRY = "queue_env.env:QueueEnv"
_VECTOR_ENTRY = "queue_env.vector_env:QueueVectorEnv"

IDS = {
    "queue_env/MGn-v0": "high-load-2",
    "queue_env/HighLoad2-v0": "high-load-2",
    "queue_env/HighLoad4-v0": "high-load-4",
    "queue_env/HighLoad10-v0": "high-load-10",
    "queue_env/LowLoad4-v0": "low-load-4",
    "queue_env/Light2-v0": "light-2",
    "queue_env/Impatient100-v0": "impatient-100",
    "queue_env/ImpatientDhr100-v0": "impatient-dhr-100",
    "queue_env/ImpatientDhrLight100-v0": "impatient-dhr-light-100",
}
"""The ids and the scenario each has by default."""


def register_when_gymnasium_is_there() -> None:
    """Tell Gymnasium of the environments: now if it is imported, else as soon as it is."""
    if "gymnasium" in sys.modules:
        _register()
    else:
        sys.meta_path.insert(0, _UntilGymnasium())


class _UntilGymnasium(MetaPathFinder):
    """Finds nothing itself, but sees to it that the import of Gymnasium ends with the registration."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname != "gymnasium":
            return None
        sys.meta_path.remove(self)
        spec = find_spec("gymnasium")
        if spec is None or spec.loader is None:
            return spec
        loader, run = spec.loader, spec.loader.exec_module

        def run_and_register(module: ModuleType) -> None:
            del loader.exec_module
            run(module)
            _register()

        loader.exec_module = run_and_register  # type: ignore[method-assign]
        return spec


def _register() -> None:
    """Tell Gymnasium of the environments; doing it again changes nothing."""
    import gymnasium as gym

    for name, scenario in IDS.items():
        if name not in gym.registry:
            kwargs = {"scenario": scenario}
            gym.register(name, entry_point=_ENTRY, vector_entry_point=_VECTOR_ENTRY, kwargs=kwargs)
