"""How new jobs to come are written into the memory of a system."""

from queue_env.kernel.compile import jit_entry
from queue_env.kernel.layout import Array, Floats


def _supply_arrivals(systems: Array, chunks: Array, b: int, gaps: Floats, patience: Floats) -> None:
    """Let the next jobs come at these gaps, the first after the last arrival, perhaps with patience."""
    s, chunk = systems[b], chunks[b]
    time = 0.0
    for i in range(len(gaps)):
        time += gaps[i]
        chunk[i]["arrival"] = time
    for i in range(len(patience)):
        chunk[i]["patience"] = patience[i]
    s["base"] = s["last_arrival"]
    s["next"] = 0
    s["filled"] = len(gaps)


def _supply_sizes(systems: Array, chunks: Array, b: int, sizes: Floats) -> None:
    """Let the next jobs have these sizes."""
    s, chunk = systems[b], chunks[b]
    for i in range(len(sizes)):
        chunk[i]["size"] = sizes[i]
    s["next_size"] = 0
    s["sizes_filled"] = len(sizes)


supply_arrivals = jit_entry(_supply_arrivals)
supply_sizes = jit_entry(_supply_sizes)
