"""Whether a larger or a smaller filter would make lookups read clearly less."""

from __future__ import annotations

from collections.abc import Callable

from secure_bloom.advising.trial import ColumnTrial, LookupComparison
from secure_bloom.options import BloomFilterOptions

#: Another false-positive probability -> about the size of its filter, as a multiple of one of 1 %.
_OTHERS = {0.1: 0.5, 0.001: 2.0}
#: It must save this share of the bytes that an absent value reads with a filter of 1 %.
_WORTH = 0.1


def other_fpp(trial: ColumnTrial, try_with: Callable[[float], ColumnTrial]) -> float | None:
    """The probability that serves clearly better than 1 %, which was tried; None for none.

    Only one that promises to be better is tried, because that takes as long as the first trial.
    """
    for fpp, size in _OTHERS.items():
        if trial.absent is not None and _promises(trial.absent, fpp, size):
            other = try_with(fpp)
            if _is_better(other.absent, trial.absent, 1 - _WORTH) and (
                trial.present is None or _is_better(other.present, trial.present, 1)
            ):
                return fpp
    return None


def _promises(absent: LookupComparison, fpp: float, size: float) -> bool:
    """Whether filters of that size should read less, with the pages that pass them by chance."""
    footers, now = absent.with_.footers, absent.with_.bytes
    pages = absent.without.bytes - absent.without.footers
    filters = max(0.0, now - footers - BloomFilterOptions().fpp * pages)
    return footers + size * filters + fpp * pages < (1 - _WORTH) * now


def _is_better(other: LookupComparison | None, first: LookupComparison, share: float) -> bool:
    return other is not None and other.with_.bytes < share * first.with_.bytes
