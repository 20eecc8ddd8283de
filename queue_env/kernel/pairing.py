"""Pairing heaps of jobs by size, one for each level of attained service, linked through the jobs themselves.

``child`` is a job's first child, ``sibling`` the next one, ``previous`` the sibling before or, for a first child, the
parent; -1 stands for none. Melding is O(1), taking any job out O(log n) amortised.
"""

from queue_env.kernel.compile import jit, jit_apart
from queue_env.kernel.layout import Array


@jit
def clear(jobs: Array, slot: int) -> None:
    """Make a job a heap of its own."""
    job = jobs[slot]
    job["child"] = -1
    job["sibling"] = -1
    job["previous"] = -1


@jit_apart
def meld(jobs: Array, one: int, other: int) -> int:
    """Join two heaps, given by their roots, and return the root of the result. Either may be -1."""
    if one < 0:
        return other
    if other < 0:
        return one
    a, b = jobs[one], jobs[other]
    if b["size"] < a["size"] or (b["size"] == a["size"] and b["number"] < a["number"]):
        one, other = other, one
        a, b = b, a
    b["sibling"] = a["child"]
    if a["child"] >= 0:
        jobs[a["child"]]["previous"] = other
    b["previous"] = one
    a["child"] = other
    a["sibling"] = -1
    a["previous"] = -1
    return one


@jit_apart
def meld_children(jobs: Array, slot: int) -> int:
    """Join the children of a job, in pairs and then from the last pair back, and return the root."""
    pairs = -1
    child = jobs[slot]["child"]
    while child >= 0:
        partner = jobs[child]["sibling"]
        following = jobs[partner]["sibling"] if partner >= 0 else -1
        clear_links(jobs, child)
        if partner >= 0:
            clear_links(jobs, partner)
        pair = meld(jobs, child, partner)
        jobs[pair]["sibling"] = pairs
        pairs = pair
        child = following
    root = -1
    while pairs >= 0:
        following = jobs[pairs]["sibling"]
        jobs[pairs]["sibling"] = -1
        root = meld(jobs, root, pairs)
        pairs = following
    jobs[slot]["child"] = -1
    return root


@jit
def clear_links(jobs: Array, slot: int) -> None:
    """Cut a job from its siblings, with its children."""
    jobs[slot]["sibling"] = -1
    jobs[slot]["previous"] = -1


@jit_apart
def take_out(jobs: Array, root: int, slot: int) -> int:
    """Take a job out of the heap with the given root and return the new root."""
    job = jobs[slot]
    rest = meld_children(jobs, slot)
    if slot == root:
        return rest
    before, after = job["previous"], job["sibling"]
    if jobs[before]["child"] == slot:
        jobs[before]["child"] = after
    else:
        jobs[before]["sibling"] = after
    if after >= 0:
        jobs[after]["previous"] = before
    clear_links(jobs, slot)
    return meld(jobs, root, rest)


@jit
def following(jobs: Array, root: int, slot: int) -> int:
    """Return the job after `slot` in a walk over the whole heap, or -1."""
    if jobs[slot]["child"] >= 0:
        return int(jobs[slot]["child"])
    while slot != root:
        if jobs[slot]["sibling"] >= 0:
            return int(jobs[slot]["sibling"])
        while jobs[jobs[slot]["previous"]]["child"] != slot:
            slot = jobs[slot]["previous"]
        slot = jobs[slot]["previous"]
    return -1
