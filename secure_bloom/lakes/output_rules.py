# Strings, not Path objects, as in storage.
# ruff: noqa: PTH110, PTH112, PTH118, PTH119, PTH120, PTH207
"""Refuse output files that would replace an input, or become a part of a table.

    require_report_file(output, policy_path, keyring)    a report, before the run
    refuse_rows(output, is_data=True, given=paths, listing=listing)    rows, before the first

A report replaces no data and no keys.  Rows are in clear: the next reader of a folder would take a
data file in it for a part of the table.
"""

from __future__ import annotations

import glob
import os
from collections.abc import Collection, Iterable, Iterator
from contextlib import suppress
from fnmatch import fnmatch
from pathlib import Path
from typing import Final

from secure_bloom.encryption.policy_files import policy_files
from secure_bloom.errors import PolicyError
from secure_bloom.lakes import formats
from secure_bloom.lakes.managed_tables import tables_above
from secure_bloom.lakes.table_listing import TableListing
from secure_bloom.reports.text import legible
from secure_bloom.storage.listing import DATA_SUFFIXES, expand
from secure_bloom.storage.os_errors import system_errors
from secure_bloom.storage.paths import below, is_object_uri, local_path

#: How data files begin: Parquet, encrypted Parquet, Avro, Arrow, ORC.
_DATA: Final = (b"PAR1", b"PARE", b"Obj\x01", b"ARROW1", b"ORC")
#: A keyring has one of these words.
_KEYS: Final = (b'"master_keys"', b'"data_keys"', b'"explicit"')
#: Bytes at the beginning of a file that are read to recognise it.
_HEAD = 65_536


def require_report_file(
    target: Path | None, policy: Path | None = None, *needed: Path | None
) -> None:
    """Raise PolicyError, before a table is read, if a report cannot be written to ``target``.

    A report never replaces the ``policy`` or a file that it includes, a file in ``needed`` (the
    keyring), another keyring or a data file.  It has no name of a data file, and is no part of a
    table's log.  Raises PolicyError too for a policy that cannot be read.
    """
    if target is None:
        return
    with system_errors(str(target)):
        if target.is_dir():
            raise PolicyError(
                "a report cannot be written to a folder",
                hint=f"name a file in it: {target / 'report'}",
                path=str(target),
            )
        if not target.parent.is_dir():
            raise PolicyError(
                f"a report cannot be written: there is no folder {target.parent}",
                hint="make the folder first",
                path=str(target),
            )
        if target.exists() and not target.is_file():
            return
        place = target.resolve()
        is_kept = target.exists() and _is_kept(place, policy, needed)
        is_in_log = any(
            below(str(place), f"{folder}/{each.log_folder}")
            for folder, each in tables_above(str(place)).items()
        )
    if is_kept or is_in_log:
        raise PolicyError(
            "the report would replace a file that is not a report"
            if is_kept
            else "the report would become a part of a table's log",
            hint="name another file",
            path=str(target),
        )
    if target.name.lower().endswith(DATA_SUFFIXES):
        raise PolicyError(
            "a report is no Parquet file, and readers of its folder would take it for one",
            hint=f"name it {target.with_suffix('.txt')}",
            path=str(target),
        )


def _is_kept(place: Path, policy: Path | None, needed: Iterable[Path | None]) -> bool:
    with place.open("rb") as file:
        head = file.read(_HEAD)
    every = (*(() if policy is None else policy_files(policy)), *needed)
    is_needed = any(it is not None and it.exists() and it.samefile(place) for it in every)
    return is_needed or head.startswith(_DATA) or any(word in head for word in _KEYS)


def refuse_rows(
    output: Path, *, is_data: bool, given: Collection[str], listing: TableListing
) -> str | None:
    """Raise PolicyError if rows in ``output`` would replace an input file, or join a table.

    Return a note if only other readers would take them for a file of the table.

    ``given`` are the paths of a table that is read, as the caller named them, and ``listing`` is
    what they mean.  ``is_data`` is whether readers of a folder take the file for data.
    """
    with system_errors(str(output)):
        places = {os.path.realpath(output), _in_real_folder(str(output))}
        if places & {os.path.realpath(it) for it in _local(listing.paths)}:
            raise PolicyError(
                "the output would overwrite the input", hint="name another file", path=str(output)
            )
        tables = [each for place in places for each in tables_above(place).values()]
        is_inside = any(_is_read(place, given, listing) for place in places)
    is_read = is_data and is_inside
    if tables or is_read:
        where = f"lie inside {tables[0]}" if tables else "become a file of the table"
        raise PolicyError(
            f"the output would {where}, its rows in clear",
            hint="name a file in another folder",
            path=str(output),
        )
    if not is_inside or output.name.startswith(("_", ".")):
        return None
    return (
        f"{legible(str(output))} lies in the folder of the table, its rows in clear: Spark, "
        "pyarrow and Polars take every file there for one of the table, so move it elsewhere"
    )


def _is_read(place: str, given: Collection[str], listing: TableListing) -> bool:
    """Return whether who reads the table again would find a data file at ``place``."""
    named = [it for it in given if formats.named_format(it) is None]
    patterns = [it for it in _local(named) if not os.path.exists(it)]
    if any(_is_matched(place, it) for it in patterns):
        return True
    return any(below(place, folder) for folder in set(_folders_read(_local(named), listing)))


def _folders_read(named: Iterable[str], listing: TableListing) -> Iterator[str]:
    """Yield the real paths of folders whose data files are read, with links followed."""
    alone: set[str] = set()
    for path in named:
        with suppress(PolicyError):
            for match in expand(path):
                if os.path.isdir(match):
                    yield os.path.realpath(match)
                else:
                    alone.add(match)
    folders = {os.path.dirname(file) for file in _local(listing.paths) if file not in alone}
    yield from map(os.path.realpath, folders)
    for table in listing.logs:
        yield from map(os.path.realpath, _local(table.locations))


def _is_matched(place: str, pattern: str) -> bool:
    folder, name = os.path.split(pattern)
    folders = glob.glob(folder or ".", recursive=True)
    return fnmatch(os.path.basename(place), name) and os.path.dirname(place) in map(
        os.path.realpath, folders
    )


def _in_real_folder(path: str) -> str:
    """Return the path with links among its folders followed, but not the file itself if a link."""
    return os.path.join(os.path.realpath(os.path.dirname(path)), os.path.basename(path))


def _local(paths: Iterable[str]) -> list[str]:
    return [local_path(it) for it in paths if not is_object_uri(it)]
