"""Options of a filter, and the three modes of a footer: words used on every floor."""

from __future__ import annotations

import enum
import numbers
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeAlias

from secure_bloom.errors import PolicyError

#: Names of columns; a single text is one name.
Names: TypeAlias = str | Iterable[str]
#: The smallest filter: one block of 256 bits.
MIN_BYTES = 32
#: Arrow C++ and parquet-java read no larger bitset.
MAX_BYTES = 128 * 1024 * 1024


def require_whole(name: str, value: object) -> None:
    """Raise PolicyError for what is no whole number: a truth value, a float, a text."""
    if isinstance(value, bool) or not isinstance(value, numbers.Integral):
        raise PolicyError(f"{name} is of type {type(value).__name__}, wanted a whole number")


def require_number(name: str, value: object) -> None:
    """Raise PolicyError for what is no number: a truth value, a text, None."""
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise PolicyError(f"{name} is of type {type(value).__name__}, wanted a number")


def as_names(what: str, names: Names) -> list[str]:
    """One name or many as a list; PolicyError for what is no name."""
    given = [names] if isinstance(names, str) else names
    if not hasattr(given, "__iter__"):
        raise PolicyError(f"{what} is of type {type(names).__name__}, wanted a name or a list")
    listed = list(given)
    for name in listed:
        if not isinstance(name, str):
            raise PolicyError(f"{what} holds a {type(name).__name__}, wanted names of columns")
    return listed


class FooterMode(enum.StrEnum):
    """How a file's footer is stored (Encryption.md 5.4 and 5.5)."""

    PLAINTEXT = "plaintext"
    SIGNED = "signed"
    ENCRYPTED = "encrypted"


@dataclass(frozen=True, slots=True, kw_only=True)
class BloomFilterOptions:
    """Bounds for one column's filter: at most ``fpp`` false positives, at most ``max_bytes``.

    ``fpp`` is a probability, 0 < fpp < 1; ``max_bytes`` bounds the bitset of one row group.  When
    both cannot be had, ``max_bytes`` wins and the report says which fpp the filter really has.
    """

    fpp: float = 0.01
    max_bytes: int = MAX_BYTES

    def __post_init__(self) -> None:
        require_number("fpp", self.fpp)
        require_whole("max_bytes", self.max_bytes)
        if not 0.0 < self.fpp < 1.0:
            raise PolicyError(f"fpp is {self.fpp}, it must lie between 0 and 1, both excluded")
        if not MIN_BYTES <= self.max_bytes <= MAX_BYTES:
            raise PolicyError(
                f"max_bytes is {self.max_bytes}, it must lie between {MIN_BYTES} and {MAX_BYTES}"
            )

    @classmethod
    def of(cls, column: str, given: object) -> BloomFilterOptions:
        """Options as a caller may write them: themselves, a number (fpp), True or None (default).

        Raises PolicyError, which names ``column``, for anything else.
        """
        if isinstance(given, cls):
            return given
        if given is None or given is True:
            return cls()
        if given is not False and isinstance(given, numbers.Real):
            return cls(fpp=float(given))
        raise PolicyError(
            f"its options are of type {type(given).__name__}, wanted BloomFilterOptions or an fpp",
            column=column,
        )
