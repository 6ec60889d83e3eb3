"""What a Delta table costs beside a bare folder: a log to read, names to note, one commit."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from benchmarks.harness.data import COLUMNS, fresh_copy
from benchmarks.harness.results import Measure, Result
from benchmarks.harness.timing import process
from benchmarks.suites.small_files import costs, write_lake

RUNS = 3
_ROWS = 2000
_ADD = ("-m", "secure_bloom", "add", *(f"--column={name}" for name in COLUMNS))
_TYPES = {"id": "long", "email": "string"}


def cases(folder: Path, *, quick: bool) -> Iterator[Result]:
    """Filters for a table of many files, beside new files of a bare folder in another one."""
    files, runs = (16, 1) if quick else (1000, RUNS)
    lake, table = write_lake(folder / "lake", files, _ROWS), folder / "table"
    shutil.copytree(lake, table)
    _write_log(table)
    work, output = folder / "work", folder / "output"
    delta, bare = costs(
        process(*_ADD, work, before=partial(fresh_copy, table, work)),
        process(*_ADD, lake, f"--output={output}", before=partial(_remove, output)),
        runs=runs,
    )
    case = f"{files:,} files of {_ROWS:,} rows, filters on two columns of a Delta table"
    against = "add --output on the same files in a bare folder"
    for name, ours, other in (("", delta.wall, bare.wall), (", CPU", delta.cpu, bare.cpu)):
        yield Result(
            case=f"{case}{name}",
            against=against,
            unit="s",
            ours=ours,
            other=other,
            measure=Measure.TIMES,
            goal=1.2,
            note="whole processes; one commit",
        )


def _write_log(table: Path) -> None:
    """A log of one version that names every file, with statistics as writers leave them."""
    fields = [
        {"name": name, "type": kind, "nullable": True, "metadata": {}}
        for name, kind in _TYPES.items()
    ]
    schema = json.dumps({"type": "struct", "fields": fields})
    metadata = {"id": "lake", "format": {"provider": "parquet", "options": {}}}
    metadata |= {"schemaString": schema, "partitionColumns": [], "configuration": {}}
    stats = json.dumps({"numRecords": _ROWS, "minValues": {"id": 0}, "maxValues": {"id": _ROWS}})
    actions: list[dict[str, object]] = [
        {"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}},
        {"metaData": metadata},
    ]
    for path in sorted(table.iterdir()):
        add = {"path": path.name, "partitionValues": {}, "size": path.stat().st_size}
        add |= {"modificationTime": 0, "dataChange": True, "stats": stats}
        actions.append({"add": add})
    log = table / "_delta_log"
    log.mkdir()
    (log / f"{0:020}.json").write_text("".join(json.dumps(it) + "\n" for it in actions))


def _remove(folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
