"""The files that a run may write, and where their new content goes."""

from __future__ import annotations

from collections.abc import Mapping
from os import PathLike

from secure_bloom.errors import PolicyError
from secure_bloom.storage import find_files, refuse_append, refuse_managed
from secure_bloom.storage.output_paths import output_paths, refuse_inside
from secure_bloom.storage.paths import Paths, as_path, as_paths


def files_to_write(
    paths: Paths, *, in_place: bool, output: str | PathLike[str] | None
) -> tuple[list[str], Mapping[str, str]]:
    """Return the files at ``paths``, and with ``output`` the new path of each.

    Raises PolicyError for files of a table that keeps a log of them.  With ``in_place`` it raises
    PolicyError for files that cannot be appended to, too.
    """
    if in_place and output is not None:
        raise PolicyError("in_place and output exclude each other")
    every = as_paths(paths)
    refuse_managed(every)
    files = find_files(every)
    if in_place:
        refuse_append(files)
    if output is None:
        return files, {}
    targets = output_paths(files, every, as_path(output))
    refuse_inside(as_path(output), every)
    return files, targets
