"""What a campaign is told, and what it tells."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Effort:
    """How much is to be tried, and from which seed; a quick run takes a few seconds.

    ``scenes``, where there are any, are first words of the scenes to try.  ``journal`` is a file
    that remembers what was done, so that a run which was stopped goes on there.
    """

    quick: bool = False
    seed: int = 0
    scenes: Sequence[str] = ()
    journal: str | None = None

    def share(self, disk: int, disks: int) -> slice:
        """Which scenes to try on a disk: all of them; in a quick run each scene on one disk."""
        return slice(disk, None, disks) if self.quick else slice(None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What was tried how often, and each way in which the promise was broken.

    ``tried`` stands in the page, one sentence.  A failure is one line that says how to see it
    again.
    """

    tried: str
    trials: int
    failures: tuple[str, ...] = ()
