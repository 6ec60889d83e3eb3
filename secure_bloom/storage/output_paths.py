"""Choose the paths of outputs, and check that no output replaces an input or another output."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping

from secure_bloom.errors import PolicyError
from secure_bloom.storage.listing import file_key
from secure_bloom.storage.paths import (
    absolute_path,
    below,
    is_object_uri,
    join,
    local_path,
    name_of,
)


def output_paths(files: Iterable[str], paths: Iterable[str], output: str) -> dict[str, str]:
    """Return the new path of each file.

    The part of a file's path below the folder in which it was found is repeated below ``output``.
    """
    folders = [local_path(path) for path in paths]
    targets: dict[str, str] = {}
    for file in files:
        relative = [inner for folder in folders if (inner := below(file, folder)) is not None]
        # The nearest of the folders given: with lake/ and lake/day=1/ both named, the file keeps
        # the name that the nearer one gives.
        targets[file] = join(local_path(output), min(relative, key=len, default=name_of(file)))
    check_targets(targets)
    return targets


def check_targets(targets: Mapping[str, str]) -> None:
    """Raise PolicyError if an output is also an input, or the output of another file."""
    # Files are compared, not texts: links and ./ make many names of one file.
    keys = {file_key(target): file for file, target in targets.items()}
    for file in targets:
        if file_key(file) in keys:
            raise PolicyError(
                "the output would overwrite the input",
                hint="name another folder; add and reencrypt replace the files without --output",
                path=file,
            )
    if len(keys) < len(targets):
        raise PolicyError(
            "two input files would become one output file",
            hint="give the folder that holds them, so that their paths below it are kept",
        )


def refuse_inside(output: str, paths: Iterable[str]) -> None:
    """Raise PolicyError for an output folder inside the table that is read.

    The next reader of the table would take the files in it for rows of the table.
    """
    target = _behind_links(output)
    for path in paths:
        if below(f"{target}/", _behind_links(path)) is not None:
            raise PolicyError(
                "the output would lie inside the table itself",
                hint="name a folder beside it",
                path=output,
            )


def _behind_links(path: str) -> str:
    text = absolute_path(path)
    # Links are followed: a folder may lead back into the table under another name.
    return text if is_object_uri(text) else os.path.realpath(text)
