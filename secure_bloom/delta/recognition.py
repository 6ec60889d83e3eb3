"""Recognize paths that name a Delta table: its folder, given alone."""

from __future__ import annotations

from collections.abc import Sequence

from secure_bloom.errors import PolicyError
from secure_bloom.storage import is_object_uri, join, local_path
from secure_bloom.storage.dispatch import tree_of
from secure_bloom.storage.managed_tables import refuse_above

LOG_FOLDER = "_delta_log"


def delta_table(paths: Sequence[str]) -> str | None:
    """Return the folder of the Delta table that the paths name, or None if they name files."""
    if len(paths) != 1:
        return None
    path = local_path(paths[0])
    folder = path if is_object_uri(path) else path.rstrip("/") or "/"
    if not tree_of(folder).is_folder(join(folder, LOG_FOLDER)):
        return None
    # A table inside another one: the outer log would not know of a commit.
    refuse_above([folder])
    return folder


def refuse_options_of_tables(**given: object) -> None:
    """Raise PolicyError for options that only make sense for a table with a log."""
    for name, value in given.items():
        if value is not None:
            raise PolicyError(
                f"{name} is for the folder of a Delta table, given alone",
                hint="name the files or folders that are wanted instead",
            )
