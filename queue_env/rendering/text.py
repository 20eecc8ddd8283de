"""A queue as text, for terminals and logs."""

from __future__ import annotations

from queue_env.rendering.numerals import clock, short
from queue_env.rendering.picture import Picture

__all__ = ["draw_text"]

MOST_IN_SERVICE = 16
"""Lines of jobs in service, at most; the anchor is among them."""

MOST_WAITING = 12
"""Lines of waiting jobs, at most; the anchor is among them."""

BAR = 20
"""Characters of a whole bar."""

_EIGHTHS = " ▏▎▍▌▋▊▉"


def draw_text(picture: Picture) -> str:
    """Draw the queue as lines of text, without control characters and without a line's end after the last one.

    First a line about the queue as a whole, then a line per job in service, then the queue in arrival order.
    A bar is the remaining over the original size.
    """
    lines = [_summary(picture)]
    for name, places, most in (
        ("in service", picture.in_service, MOST_IN_SERVICE),
        ("waiting", picture.waiting, MOST_WAITING),
    ):
        if len(places):
            lines.append(f"{name}: {len(places):,}")
            lines += [_job(picture, place) for place in picture.first(places, most)]
            if len(places) > most:
                lines.append(f"  ... and {len(places) - most:,} more")
    return "\n".join(lines)


def _summary(picture: Picture) -> str:
    return "  ".join(
        (
            picture.title,
            f"time {clock(picture.time)}",
            f"present {picture.number:,}",
            f"in use {short(picture.in_use)} of {picture.servers:,}",
            f"served {picture.served:,}",
            f"mean response {short(picture.mean_response)}",
            f"p99 {short(picture.p99_response)}",
            f"reward {short(picture.reward)}",
        )
    )


def _job(picture: Picture, place: int) -> str:
    size, remaining, rate = (float(values[place]) for values in (picture.sizes, picture.remaining, picture.rates))
    share = min(remaining / size, 1.0) if size > 0 else 0.0
    line = (
        f"  #{picture.numbers[place]:<8} {f'rate {rate:.2f}' if rate > 0 else '':9} |{_bar(share)}|"
        f" {short(remaining):>8} of {short(size):<8} age {short(float(picture.ages[place])):<8}"
    )
    return (line + " anchor" if place == picture.anchor else line).rstrip()


def _bar(share: float) -> str:
    """A bar in eighths of a character; one eighth at least where anything is left."""
    eighths = round(share * BAR * 8)
    if share > 0:
        eighths = max(eighths, 1)
    full, rest = divmod(eighths, 8)
    return ("█" * full + (_EIGHTHS[rest] if rest else "")).ljust(BAR)
