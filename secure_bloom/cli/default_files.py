"""The policy and the keyring that a verb uses where its options name none.

SECURE_BLOOM_POLICY and SECURE_BLOOM_KEYRING name them.  Otherwise the nearest
``secure-bloom.toml``, or ``pyproject.toml`` with a table ``[tool.secure-bloom]``, in the current
folder or above it names them. Its paths are relative to its own folder:

    policy = "keys/policy.toml"
    keyring = "keys/dev-keyring.json"
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from secure_bloom.errors import PolicyError, refused_by_system
from secure_bloom.running.bounded_documents import parsed_toml, read_bounded

_FILE, _PROJECT = "secure-bloom.toml", "pyproject.toml"
#: Word of the file -> its variable in the environment.
_VARIABLES: Final = {"policy": "SECURE_BLOOM_POLICY", "keyring": "SECURE_BLOOM_KEYRING"}


def default_policy() -> str | None:
    """Return the path of the default policy, or None."""
    return _default("policy")


def default_keyring() -> str | None:
    """Return the path of the default keyring, or None."""
    return _default("keyring")


def _default(word: str) -> str | None:
    return os.environ.get(_VARIABLES[word]) or _file_defaults().get(word)


def _file_defaults() -> dict[str, str]:
    """Return the settings ``policy`` and ``keyring`` in the nearest file, with their paths.

    Raises PolicyError if the file has other settings.
    """
    try:
        here = Path.cwd()
    except FileNotFoundError:
        # The current folder was removed: nothing is above it.
        return {}
    for folder in (here, *here.parents):
        for name in (_FILE, _PROJECT):
            table = _table(folder / name)
            if table is not None:
                return dict(_paths(folder / name, table))
    return {}


def _table(path: Path) -> dict[str, Any] | None:
    """Return the table in a file, or None.

    A file that others than its user may have put there does not count: a policy may name code to
    load, and anybody may leave a file in a shared folder.
    """
    try:
        if not all(map(_is_of_user, (path.lstat(), path.stat(), path.parent.stat()))):
            return None
        with path.open("rb") as file:
            text = read_bounded(file, "the file").decode()
        document = parsed_toml(text, "the file")
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as exc:
        raise refused_by_system(exc, f"cannot be read: {exc.strerror}", path=str(path)) from exc
    except ValueError as exc:
        if path.name == _PROJECT:
            # Another program's file: whether it is TOML is not for us to say.
            return None
        raise PolicyError(f"is not TOML: {exc}", path=str(path)) from exc
    table = document if path.name == _FILE else document.get("tool", {}).get("secure-bloom")
    return table if isinstance(table, dict) else None


def _is_of_user(status: os.stat_result) -> bool:
    """Return whether only the user and root can have written this file, link or folder.

    For a link, both the link and its target count.  In a folder where everybody may write, somebody
    else may have linked a file of the user, and its paths would start at that folder.
    """
    if not hasattr(os, "geteuid"):
        return True
    everybody_writes = not stat.S_ISLNK(status.st_mode) and status.st_mode & stat.S_IWOTH
    return status.st_uid in (0, os.geteuid()) and not everybody_writes


def _paths(path: Path, table: dict[str, Any]) -> Iterator[tuple[str, str]]:
    for word, value in table.items():
        if word not in _VARIABLES:
            hint = f"there are {' and '.join(_VARIABLES)}, at the top of {_FILE}"
            raise PolicyError(f"there is no default {word}", hint=hint, path=str(path))
        if not isinstance(value, str):
            hint = f'write {word} = "FILE"'
            raise PolicyError(f"{word} is not a text, wanted a path", hint=hint, path=str(path))
        yield word, str(path.parent / value)
