"""Read the actions of a Delta checkpoint: classic, in parts, or of version 2 with sidecar files.

pyarrow reads checkpoints in Parquet, and is loaded with the first of them.

If the table property ``delta.checkpoint.writeStatsAsJson`` is false, a checkpoint has the
statistics of a file only as columns, ``stats_parsed``. They are turned into the text that commits
have: a commit that adds the file again needs the text, because without it a file with deleted rows
could not be read. A bound that has no exact form in JSON is left out: a missing bound is better
than a wrong one.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from datetime import date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final

from secure_bloom.errors import FormatError, located
from secure_bloom.lakes.delta.actions import Action, fields_of, json_lines, text
from secure_bloom.running.memory_budget import DecodedBytes
from secure_bloom.storage import join, name_of, open_input

if TYPE_CHECKING:
    import pyarrow as pa

#: The actions that a snapshot is made of.
ACTIONS = ("protocol", "metaData", "add", "remove", "domainMetadata", "sidecar")
#: Copies in columns of their own -> the text that says the same, where the checkpoint has it.
_PARSED = {"stats_parsed": "stats", "partitionValues_parsed": "partitionValues"}
#: A checkpoint may have each action this number of times, and some more often.
_TIMES: Final = 2
_REPEATED: Final = 10_000
#: The fields by which two actions of one name are of the same file, or of the same domain.
_IDENTITY: Final = ("path", "deletionVector", "domain")


def read_log_file(path: str) -> bytes:
    """Return all bytes of a file of the log."""
    with located(path=path), open_input(path) as file:
        return file.all_bytes()


def checkpoint_actions(path: str, sidecar_folder: str, decoded: DecodedBytes) -> Iterator[Action]:
    """Yield the actions of one part of a checkpoint, and of the sidecar files that it names."""
    seen = set[str]()
    for action in log_actions(path, decoded):
        sidecar = fields_of(action, "sidecar")
        if sidecar is None:
            yield action
            continue
        # Sidecars lie in one folder, whatever else their path says.
        name = name_of(text(sidecar, "path"))
        if name in ("", ".", ".."):
            raise FormatError("a sidecar file of the checkpoint has no name", path=path)
        # To read a file again changes nothing, and each time costs a few bytes of the checkpoint.
        if name not in seen:
            seen.add(name)
            yield from log_actions(join(sidecar_folder, name), decoded)


def log_actions(path: str, decoded: DecodedBytes) -> Iterator[Action]:
    """Yield the actions of one file of the log, a commit or a part of a checkpoint.

    ``decoded`` counts the bytes of all files of the log.
    """
    with located(path=path):
        data = read_log_file(path)
        is_json = name_of(path).endswith(".json")
        yield from json_lines(data, decoded) if is_json else _parquet_actions(path, data, decoded)


def _parquet_actions(path: str, data: bytes, decoded: DecodedBytes) -> Iterator[Action]:
    # Imported here: pyarrow is loaded with the first checkpoint.
    from secure_bloom.parquet.metadata_rows import metadata_rows

    seen, number = set[int](), 0
    for batch in metadata_rows(path, data, decoded, _columns):
        for row in _rows(batch):
            action = {name: _set(fields) for name, fields in row.items() if fields is not None}
            for name, fields in action.items():
                # As texts: a hostile file has values of any type.  As hashes: paths are long.
                seen.add(hash((name, *(repr(fields.get(it)) for it in _IDENTITY))))
                number += 1
            yield action
        # A checkpoint has one action for each file, and a few bytes can repeat it for ever.
        if number > _TIMES * len(seen) + _REPEATED:
            raise FormatError(f"the checkpoint repeats its actions: {len(seen):,} of {number:,}")


def _newest(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return the rows without each ``add`` whose path a later ``add`` of the batch has.

    The later one takes its place, whatever lies between.  A few bytes can hold millions of equal
    rows, and each costs time as a value of Python.
    """
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc

    kind = batch.schema.field("add").type if "add" in batch.schema.names else pa.null()
    place = kind.get_field_index("path") if pa.types.is_struct(kind) else -1
    if place < 0 or not pa.types.is_string(kind.field(place).type):
        return batch
    paths = pc.struct_field(batch["add"], [place]).dictionary_encode()
    if len(paths.dictionary) == len(paths) - paths.null_count:
        return batch
    kept = paths.is_null().to_numpy(zero_copy_only=False)
    for name in batch.schema.names:
        if name != "add":
            kept |= batch[name].is_valid().to_numpy(zero_copy_only=False)
    codes = paths.indices.fill_null(len(paths.dictionary)).to_numpy()
    _, last = np.unique(codes[::-1], return_index=True)
    kept[len(codes) - 1 - last] = True
    return batch.filter(pa.array(kept))


def _rows(batch: pa.RecordBatch) -> list[dict[str, Any]]:
    try:
        # Strict: of two equal keys of a map another reader may take the other one.
        rows: list[dict[str, Any]] = _newest(batch).to_pylist(maps_as_pydicts="strict")
    # pyarrow does not filter some types that a file can claim.
    except (KeyError, ValueError, NotImplementedError) as exc:
        raise FormatError("the checkpoint cannot be read as Parquet") from exc
    return rows


def _columns(schema: pa.Schema) -> list[str]:
    """Return the columns of the wanted actions, except columns that repeat another column."""
    found = []
    for name in ACTIONS:
        if schema.get_field_index(name) >= 0:
            members = [member.name for member in schema.field(name).type]
            known = frozenset(members)
            # The copies are read only where the text is missing.
            found += [f"{name}.{it}" for it in members if _PARSED.get(it) not in known]
    return found


def _set(fields: dict[str, Any]) -> dict[str, Any]:
    """Return an action as a JSON commit has it: without null fields at any depth."""
    found = {
        name: _set(value) if isinstance(value, dict) and name not in _MAPS else value
        for name, value in fields.items()
        if value is not None
    }
    if "stats_parsed" in found:
        found["stats"] = stats_text(found.pop("stats_parsed"))
    return found


#: Maps, whose nulls say something.
_MAPS = frozenset({"partitionValues", "configuration", "tags"})


def stats_text(parsed: Mapping[str, Any]) -> str:
    """Return the statistics as text. PROTOCOL.md, "Per-file Statistics"."""
    return json.dumps(_plain(parsed), separators=(",", ":"), ensure_ascii=False)


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        plain = {name: _plain(part) for name, part in value.items()}
        return {name: part for name, part in plain.items() if part is not None}
    return next((form(value) for kind, form in _FORMS.items() if isinstance(value, kind)), None)


def _time_text(value: datetime) -> str:
    # UTC is written as Z; a time without a zone has none.
    return value.isoformat(timespec="microseconds").replace("+00:00", "Z")


def _decimal_number(value: Decimal) -> float | int | None:
    if value == value.to_integral_value():
        return int(value)
    # It becomes a number of JSON only if it reads back as the same decimal.
    return float(value) if Decimal(repr(float(value))) == value else None


#: Kinds of values and how JSON says them; the first that fits counts.
_FORMS: dict[type, Any] = {
    bool: bool,
    str: str,
    int: int,
    float: lambda value: value if math.isfinite(value) else None,
    Decimal: _decimal_number,
    datetime: _time_text,
    date: date.isoformat,
}
