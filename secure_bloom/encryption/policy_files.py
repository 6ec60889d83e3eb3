"""Read a policy file and the files that it includes, as one table.

    include = ["tables/orders.toml", "teams/*.toml"]      # relative to the file that says it

An included file has the options of a policy, and may include others.  It is an error if two files
have a column, table or key: no order of files decides what is encrypted.
"""

from __future__ import annotations

import glob
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from secure_bloom.calling.close_names import near_file
from secure_bloom.encryption.configuration import ConfigTable
from secure_bloom.errors import PolicyError, located, refused_by_system
from secure_bloom.running.bounded_documents import parsed_toml, read_bounded, toml_size
from secure_bloom.running.memory_budget import refuse_beyond

_INCLUDE: Final = "include"
_DEEPEST: Final = 16
_MOST_FILES: Final = 1_000
_NAME: Final = "the policy"


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicySource:
    """The tables of a policy, from one file or several.

    ``base`` is the folder of the file that has ``[kms]``. ``included`` are the other files, and
    ``parts`` the tables of each file by itself.
    """

    table: ConfigTable
    base: Path
    included: tuple[Path, ...] = ()
    parts: Mapping[Path, Mapping[str, object]] = field(default_factory=dict)

    def alone(self, path: Path) -> PolicySource:
        """Return only the tables that the file at ``path`` defines."""
        return PolicySource(table=ConfigTable.of(_NAME, self.parts[path]), base=self.base)


def read_policy(path: Path) -> PolicySource:
    """Return the tables of a policy file and of the files that it includes.

    Raises PolicyError with the path of the file that cannot be read, is not TOML, includes itself,
    or says again what another file says.
    """
    reader = _PolicyReader()
    reader.read(path.absolute(), ())
    return PolicySource(
        table=ConfigTable.of(_NAME, reader.entries),
        base=reader.base or path.absolute().parent,
        included=tuple(reader.files)[1:],
        parts=reader.files,
    )


def policy_files(path: Path) -> tuple[Path, ...]:
    """Return the policy file and all files that it includes. Raises as :func:`read_policy`."""
    return (path, *read_policy(path).included)


@dataclass(slots=True)
class _PolicyReader:
    """The tables of all ``files`` that were read so far, in the order of reading."""

    entries: dict[str, object] = field(default_factory=dict)
    base: Path | None = None
    files: dict[Path, Mapping[str, object]] = field(default_factory=dict)
    size: int = 0

    def read(self, path: Path, above: tuple[Path, ...]) -> None:
        """Read a file and the files that it includes. ``above`` are the files that include it."""
        place = path.resolve()
        with located(path=os.fspath(path)):
            if place in above:
                chain = " -> ".join(it.name for it in (*above[above.index(place) :], place))
                raise PolicyError(f"the policy includes itself: {chain}")
            if place in self.files:
                return
            if len(above) > _DEEPEST or len(self.files) >= _MOST_FILES:
                raise _too_much()
            self.files[place] = content = dict(self._content(path))
            included = _included(content.pop(_INCLUDE, []), path)
            self._take(content, path.parent)
        for other in included:
            self.read(other, (*above, place))

    def _content(self, path: Path) -> Mapping[str, object]:
        import tomllib

        try:
            with path.open("rb") as file:
                # Editors of Windows put a byte order mark in front, which TOML does not know.
                text = read_bounded(file, _NAME).decode("utf-8-sig")
            self.size += toml_size(text)
            refuse_beyond(self.size, "the policy with the files that it includes")
            return parsed_toml(text, _NAME)
        except OSError as exc:
            hint = near_file(path) if isinstance(exc, FileNotFoundError) else None
            message = f"the policy cannot be read: {exc.strerror}"
            raise refused_by_system(exc, message, hint=hint) from exc
        except UnicodeDecodeError as exc:
            raise PolicyError("the policy is not UTF-8 text") from exc
        except tomllib.TOMLDecodeError as exc:
            # The parser's text may be shown, unlike that of a keyring: a policy names keys and
            # holds none.
            hint = "a keyring (JSON) is given by --keyring" if text.lstrip()[:1] == "{" else None
            raise PolicyError(f"the policy is not TOML: {exc}", hint=hint) from exc
        except (ValueError, RecursionError) as exc:
            raise PolicyError(
                "the policy is not TOML: nested too deep, or a number too long"
            ) from exc

    def _take(self, content: Mapping[str, object], folder: Path) -> None:
        """Add the tables of one file to the tables of the files read before."""
        if "kms" in content:
            self.base = folder
        for word, value in content.items():
            if word not in self.entries:
                # A copy: what other files say is added to it.
                self.entries[word] = _copy(value)
            elif word in _JOINED:
                _join(f"[{word}]", self.entries[word], value)
            else:
                raise PolicyError(
                    f"[{word}] is in two files of the policy", hint="leave it in one of them"
                )


#: The tables that several files may have, each for its own part.
_JOINED: Final = frozenset({"tables", "columns", "classified", "keys", "audit"})


def _copy(value: object) -> object:
    """Return a copy of a table or a list, to which entries can be added."""
    if isinstance(value, dict):
        return {word: list(it) if isinstance(it, list) else it for word, it in value.items()}
    return value


def _join(name: str, one: object, other: object) -> None:
    """Add the entries of one file's table to the same table of another file. Lists are joined."""
    table, added = ConfigTable.of(name, one).entries, ConfigTable.of(name, other).entries
    for word, value in added.items():
        known = table.get(word)
        if isinstance(known, list) and isinstance(value, list):
            known.extend(value)
        elif word in table:
            raise PolicyError(
                f"{word!r} of {name} is in two files of the policy",
                hint="leave it in one of them",
            )
        else:
            # The table is our own copy.
            table[word] = value  # type: ignore[index]


def _included(value: object, path: Path) -> list[Path]:
    """Return the files that the list in a file means: paths as they are, globs sorted by name."""
    if not isinstance(value, list) or not all(isinstance(it, str) and it for it in value):
        raise PolicyError(
            "'include' of the policy is not a list of paths",
            hint='write include = ["orders.toml", "teams/*.toml"]',
        )
    if len(value) > _MOST_FILES:
        raise _too_much()
    # Once each: a thousand patterns may mean the same thousand files.
    found: dict[Path, None] = {}
    own = path.resolve()
    for name in dict.fromkeys(value):
        if not glob.has_magic(name):
            found[path.parent / name] = None
            continue
        # A glob may mean the file that has it, too.
        files = sorted(map(Path, glob.glob(str(path.parent / name))))  # noqa: PTH207
        if not files:
            raise PolicyError(
                f"no file is at {name!r}, which the policy includes",
                hint=f"paths begin at the folder of the file: {path.parent}",
            )
        found.update((it, None) for it in files if it not in found and it.resolve() != own)
    return list(found)


def _too_much() -> PolicyError:
    return PolicyError(
        f"the policy includes too much: more than {_MOST_FILES:,} files, or files deeper than "
        f"{_DEEPEST}"
    )
