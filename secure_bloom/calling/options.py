"""Options of a filter, the modes of a footer, and checks of names: used on every floor."""

from __future__ import annotations

import enum
import numbers
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeAlias

from secure_bloom.calling.arguments import check_fields, checked_arguments
from secure_bloom.errors import PolicyError

#: Names of columns; a single text is one name.
Names: TypeAlias = str | Iterable[str]
#: The smallest filter: one block of 256 bits.
MIN_BYTES = 32
#: Arrow C++ and parquet-java read no larger bitset.
MAX_BYTES = 128 * 1024 * 1024
#: Callers give these to read a file that does not meet a requirement.
ALLOW_UNVERIFIED = "allow_unverified=True or --allow-unverified"
ALLOW_UNPROTECTED = "allow_unprotected=True or --allow-unprotected"
#: A part of the hint about a file under other keys than the policy says.
OTHER_TABLE = "if the policy is that of another table, give this table's own"


def as_names(what: str, names: Names) -> list[str]:
    """Return one name or many as a list. Raises PolicyError for anything else."""
    return as_texts(what, names, each="name", many="names of columns")


def as_texts(
    what: str, texts: str | Iterable[str], *, each: str = "text", many: str = "texts"
) -> list[str]:
    """Return one text or many as a list.

    Raises PolicyError for anything else. ``each`` and ``many`` name the texts in the error.
    """
    given = [texts] if isinstance(texts, str) else texts
    if not hasattr(given, "__iter__"):
        raise PolicyError(f"{what} is of type {type(texts).__name__}, wanted a {each} or a list")
    listed = list(given)
    for text in listed:
        if not isinstance(text, str):
            raise PolicyError(f"{what} holds a {type(text).__name__}, wanted {many}")
    return listed


class FooterMode(enum.StrEnum):
    """How a file's footer is stored (Encryption.md 5.4 and 5.5)."""

    PLAINTEXT = "plaintext"
    SIGNED = "signed"
    ENCRYPTED = "encrypted"


@dataclass(frozen=True, slots=True, kw_only=True)
class BloomFilterOptions:
    """Limits for one column's filter: at most ``fpp`` false positives, at most ``max_bytes``.

    ``fpp`` is a probability, 0 < fpp < 1. ``max_bytes`` limits the bitset of one row group.  If
    both cannot be kept, ``max_bytes`` is kept and the report shows the fpp that the filter really
    has.
    """

    fpp: float = 0.01
    max_bytes: int = MAX_BYTES

    def __post_init__(self) -> None:
        check_fields(self)
        if not 0.0 < self.fpp < 1.0:
            raise PolicyError(f"fpp is {self.fpp}, it must lie between 0 and 1, both excluded")
        if not MIN_BYTES <= self.max_bytes <= MAX_BYTES:
            raise PolicyError(
                f"max_bytes is {self.max_bytes}, it must lie between {MIN_BYTES} and {MAX_BYTES}"
            )

    @classmethod
    @checked_arguments
    def of(cls, column: str, given: object) -> BloomFilterOptions:
        """Return options from a caller's value: options, a number (fpp), True or None (default).

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


class MissingKeys(enum.Enum):
    """What a read does with a column whose key is missing."""

    ERROR = "error"
    NULL = "null"
    DROP = "drop"
