"""Read tables of configuration files (TOML or JSON), and check each option and its type.

Errors name the table, the option, the type that was found and the type wanted.  They never show a
value, because the values of a keyring are keys.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from secure_bloom.calling.close_names import CloseNames
from secure_bloom.errors import PolicyError

T = TypeVar("T")

_TYPE_NAMES = {
    str: "text",
    bool: "true or false",
    int: "an integer",
    float: "a decimal number",
    dict: "a table",
    list: "a list",
    type(None): "null",
}


class UnknownWordError(PolicyError):
    """A table has an unknown option, most often a misspelt one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigTable:
    """One table of a configuration file. ``name`` is its name in errors, such as ``[footer]``."""

    name: str
    entries: Mapping[str, object] = field(repr=False)

    @classmethod
    def of(cls, name: str, value: object) -> ConfigTable:
        """Return ``value`` as a table. Raises PolicyError when it is something else."""
        if not isinstance(value, dict):
            raise PolicyError(f"{name} is {_type_name(value)}, it must be a table")
        return cls(name=name, entries=value)

    def allow(self, words: Iterable[str]) -> None:
        """Raise PolicyError if the table has an option whose name is not in ``words``."""
        # A misspelt option that was passed over would leave a column in clear, or a check undone.
        known = sorted(words)
        for word in self.entries:
            if word not in known:
                raise UnknownWordError(
                    f"{self.name} has the unknown option {word!r}", hint=close_match(word, known)
                )

    def get(self, word: str, wanted: type[T]) -> T | None:
        """Return the value of the option ``word``, or None if the table does not have it."""
        # JSON's null is a value of a wrong type, and not a missing option.
        value = self.entries.get(word)
        if value is None and word not in self.entries:
            return None
        # `true` is an int to Python, not to the person who wrote the file.
        if not isinstance(value, wanted) or (isinstance(value, bool) and wanted is not bool):
            raise PolicyError(
                f"{word!r} of {self.name} is {_type_name(value)}, it must be {_TYPE_NAMES[wanted]}"
            )
        return value

    def text(self, word: str) -> str | None:
        """Return the text of the option ``word``, or None if the table does not have it.

        Raises PolicyError for an empty text.
        """
        value = self.get(word, str)
        if value is not None and not value.strip():
            raise PolicyError(f"{word!r} of {self.name} is empty")
        return value

    def choice(self, word: str, choices: Mapping[str, T]) -> T | None:
        """Return the value that ``choices`` has for the text of the option ``word``.

        Return None if the table does not have the option.
        """
        value = self.text(word)
        if value is None:
            return None
        if value not in choices:
            raise PolicyError(
                # Shown, unlike other values: an option with few choices is no key.
                f"{word!r} of {self.name} is {value!r}, it must be one of: {', '.join(choices)}",
                hint=close_match(value, choices),
            )
        return choices[value]

    def table(self, word: str, name: str) -> ConfigTable | None:
        """Return the inner table ``word``, called ``name`` in errors, or None if there is none."""
        return ConfigTable.of(name, self.entries[word]) if word in self.entries else None


def close_match(word: str, known: Iterable[str] | CloseNames) -> str:
    """Return a hint: the known name closest to ``word``, or known names if none is close."""
    names = CloseNames.of(known)
    matches = names.close(word, 1)
    if matches:
        return f"did you mean {matches[0]!r}?"
    return f"known: {names.listed()}" if names.names else "none is known"


def _type_name(value: object) -> str:
    return _TYPE_NAMES.get(type(value), type(value).__name__)
