"""The texts of ``--column``: a column with its settings, ``NAME[:fpp=F][:max_bytes=N]``."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TypeVar

from secure_bloom.calling.options import BloomFilterOptions
from secure_bloom.errors import PolicyError
from secure_bloom.reports.text import shell_word

T = TypeVar("T")


def parse_columns(texts: tuple[str, ...]) -> dict[str, BloomFilterOptions] | None:
    """Return the columns of several ``NAME[:fpp=F][:max_bytes=N]``, or None if there are none."""
    settings = {"fpp": Setting(float, "0.01"), "max_bytes": Setting(int, "65536")}
    return parse_settings(texts, settings, BloomFilterOptions) or None


@dataclass(frozen=True, slots=True)
class Setting:
    """A setting of a column: how its text is read, and a value as an example."""

    read: Callable[[str], float]
    example: str

    @property
    def wanted(self) -> str:
        """A description of valid texts."""
        return "a whole number" if self.read is int else "a number"


def parse_settings(
    texts: tuple[str, ...], settings: Mapping[str, Setting], make: Callable[..., T]
) -> dict[str, T]:
    """Return the options of each column, from several ``NAME[:setting=number]...``.

    ``make`` is called with the settings of a column.
    """
    columns: dict[str, T] = {}
    for text in texts:
        name, given = _parse_column(text, settings)
        example = f"write --column {shell_word(_with_examples(name, settings, given))}"
        if not name:
            raise PolicyError(
                f"--column {shell_word(text)} names no column", hint="write --column NAME"
            )
        if name in columns:
            raise PolicyError(
                f"--column {name} is given twice",
                hint="name it once, with all its settings: "
                f"--column {shell_word(_with_examples(name, settings, settings))}",
            )
        try:
            columns[name] = make(
                **{key: _number(key, value, settings[key]) for key, value in given.items()}
            )
        except PolicyError as error:
            raise PolicyError(f"--column {text}: {error.message}", hint=example) from None
    return columns


def _with_examples(name: str, settings: Mapping[str, Setting], chosen: Iterable[str]) -> str:
    """Return an example of a column with its settings, written as for ``--column``."""
    return "".join([name, *(f":{key}={settings[key].example}" for key in chosen)])


def _number(key: str, value: str, setting: Setting) -> float:
    try:
        return setting.read(value)
    except ValueError:
        raise PolicyError(f"{key} is {value!r}, wanted {setting.wanted}") from None


def _parse_column(text: str, settings: Mapping[str, Setting]) -> tuple[str, dict[str, str]]:
    # Read settings from the end, because a name may hold colons itself.
    name, options = text, dict[str, str]()
    while ":" in name and "=" in name.rpartition(":")[2]:
        name, _, setting = name.rpartition(":")
        key, _, value = setting.partition("=")
        if key not in settings:
            raise PolicyError(
                f"--column {text}: {key} is not an option, wanted {' or '.join(settings)}",
                hint=f"write --column {shell_word(_with_examples(name, settings, settings))}",
            )
        options = {key: value, **options}
    return name, options
