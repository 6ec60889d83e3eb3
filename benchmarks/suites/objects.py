"""Object stores: what travels, in how many requests, and how long it takes.

Every request takes 30 ms longer here (``store_proxy``), from a store that takes no time of its own.
The sides run as processes, because a process is what a user starts; the libraries are loaded before
the clock starts.  `python -m benchmarks.suites.objects SIDE PORT FOLDER` is one of them.
"""

from __future__ import annotations

import json
import os
import re
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.harness.results import Measure, Result
from benchmarks.harness.timing import python
from testing.store_proxy import Counts, StoreProxy, store_proxy

DELAY = 0.03
#: 1 Gbit/s.
LINE = 125_000_000
RUNS = 2
_MIB = 1024 * 1024
_COLUMNS = 11
_ENV = {
    "AWS_ACCESS_KEY_ID": "bench",
    "AWS_SECRET_ACCESS_KEY": "bench",
    "AWS_DEFAULT_REGION": "us-east-1",
    "AWS_EC2_METADATA_DISABLED": "true",
}
_ABSENT = "80000000000000000000000z"
_FILTERS = {"c0": 0.01, "c5": 0.01}


def cases(folder: Path, *, quick: bool) -> Iterator[Result]:
    """One large object, many small ones, a key that none of many has."""
    with store_proxy() as proxy:
        proxy.tell(delay=DELAY)
        yield from _large_object(folder, proxy, 16 if quick else 1024, 1 if quick else RUNS)
        yield from _small_objects(folder, proxy, 8 if quick else 500)
        yield from _absent_key(folder, proxy, 8 if quick else 1000, 1 if quick else RUNS)


def texts(rows: int, seed: int) -> pa.Array:
    """Texts of 24 characters in no order, so that no statistics tell which file has one."""
    digits = np.random.default_rng(seed).integers(48, 58, rows * 24, dtype=np.uint8)
    offsets = np.arange(0, (rows + 1) * 24, 24, dtype=np.int32)
    return pa.StringArray.from_buffers(rows, pa.py_buffer(offsets), pa.py_buffer(digits))


def write_object(path: Path, mib: int, seed: int, row_group: int) -> Path:
    """A file of so many MiB in 11 columns of texts."""
    rows = mib * _MIB // (28 * _COLUMNS)
    table = pa.table({f"c{n}": texts(rows, seed * 100 + n) for n in range(_COLUMNS)})
    pq.write_table(table, path, row_group_size=row_group, use_dictionary=False, compression="none")
    return path


@dataclass(frozen=True, slots=True, kw_only=True)
class Ran:
    """One run of a side: seconds, memory, what it said, and what went through the proxy."""

    seconds: float
    mib: float
    said: Any
    counts: Counts


def run_side(proxy: StoreProxy, side: str, folder: Path) -> Ran:
    """A side in a process of its own."""
    proxy.counts()
    told = json.loads(python("-m", "benchmarks.suites.objects", side, proxy.port, folder, env=_ENV))
    return Ran(seconds=told[0], mib=told[1], said=told[2], counts=proxy.counts())


def _large_object(folder: Path, proxy: StoreProxy, mib: int, runs: int) -> Iterator[Result]:
    path = write_object(folder / "large.parquet", mib, 1, 250_000 if mib > 100 else 20_000)
    metadata = pq.read_metadata(path)
    chunks = sum(
        metadata.row_group(group).column(column).total_compressed_size
        for group in range(metadata.num_row_groups)
        for column in (0, 5)
    )
    proxy.tell(bytes_a_second=LINE)
    ours, other = [], []
    for _ in range(runs):
        for side, into in (("add", ours), ("download-add-upload", other)):
            proxy.tell(put={"bench/large.parquet": str(path)})
            into.append(run_side(proxy, side, folder))
    proxy.tell(bytes_a_second=None)
    path.unlink()
    new = ours[0].said["bytes_after"] - ours[0].said["bytes_before"]
    footer = metadata.serialized_size
    case = f"add to 2 of 11 columns of an object of {mib} MiB"
    yield Result(
        case=f"{case}: bytes up",
        against="new filters and footer",
        unit="bytes",
        ours=ours[0].counts.bytes_up,
        other=new + footer,
        measure=Measure.TIMES,
        goal=1.01,
        note="The old footer goes, so the object grows by less than filters and footer together.",
    )
    yield Result(
        case=f"{case}: bytes down",
        against="both columns and the footer",
        unit="bytes",
        ours=ours[0].counts.bytes_down,
        other=chunks + footer,
        measure=Measure.TIMES,
        goal=1.01,
    )
    yield Result(
        case=case,
        against="download, add, upload",
        unit="s",
        ours=statistics.median(it.seconds for it in ours),
        other=statistics.median(it.seconds for it in other),
        goal=5,
        note=f"30 ms a request, 1 Gbit/s; {ours[0].counts.requests} requests against "
        f"{other[0].counts.requests}; boto3 downloads and uploads, with the threads it has.",
    )


def _small_objects(folder: Path, proxy: StoreProxy, count: int) -> Iterator[Result]:
    path = write_object(folder / "small.parquet", 1, 2, 2000)
    few = max(1, count // 5)
    proxy.tell(put={f"bench/small/{number:04}.parquet": str(path) for number in range(few)})
    first = run_side(proxy, "add-small", folder)
    proxy.tell(put={f"bench/small/{number:04}.parquet": str(path) for number in range(count)})
    ran = run_side(proxy, "add-small", folder)
    assert ran.said["added"] == count, ran.said
    case = f"add to {count} objects of 1 MiB"
    on_objects = sum(".parquet" in target for _, target, *_ in ran.counts.log)
    yield Result(
        case=f"{case}: requests an object",
        unit="requests",
        ours=on_objects / count,
        measure=Measure.VALUE,
        goal=6,
        note=f"{ran.counts.requests - on_objects} more for the folders; "
        f"{ran.seconds:.1f} s in all.",
    )
    yield Result(
        case=f"{case}: one at a time, in requests under way",
        against="most at once",
        unit="requests",
        ours=1,
        other=ran.counts.at_once,
        goal=16,
    )
    yield Result(
        case=f"{case}: most memory of the process",
        against=f"{few} objects",
        unit="MiB",
        ours=ran.mib,
        other=first.mib,
        measure=Measure.TIMES,
        goal=1.25,
        note="At most 24 objects are in memory, however many there are.",
    )


def _absent_key(folder: Path, proxy: StoreProxy, count: int, runs: int) -> Iterator[Result]:
    import secure_bloom as sb

    files = {}
    for number in range(min(count, 10)):
        path = write_object(folder / f"absent-{number}.parquet", 1, 3 + number, 2000)
        sb.add_bloom_filters(path, columns={"c0": 0.01})
        files[number] = str(path)
    proxy.tell(put={f"bench/many/{n:04}.parquet": files[n % len(files)] for n in range(count)})
    few = max(1, count // 10)
    proxy.tell(put={f"bench/some/{n:04}.parquet": files[n % len(files)] for n in range(few)})
    sides = ["probe", "read", "polars", "dataset", *(["duckdb"] if httpfs() else [])]
    found: dict[str, list[Ran]] = {side: [] for side in sides}
    for _ in range(runs):
        for side in sides:
            found[side].append(run_side(proxy, side, folder))
    seconds = {side: statistics.median(it.seconds for it in found[side]) for side in sides}
    for verb in ("probe", "read"):
        yield from _requests(verb, found[verb][0], count)
        alone = run_side(proxy, f"{verb}-alone", folder)
        yield Result(
            case=f"{verb} of an absent key in {count} objects",
            against="one after the other",
            unit="s",
            ours=seconds[verb],
            other=alone.seconds * count / few,
            goal=16,
            note="The other side does the same with one object at a time; a tenth of the objects, "
            "times ten.",
        )
    for side in sides[2:]:
        yield Result(
            case=f"read of an absent key in {count} objects",
            against=_NAMES[side],
            unit="s",
            ours=seconds["read"],
            other=seconds[side],
            goal=1,
            note=f"{found[side][0].counts.requests} requests against "
            f"{found['read'][0].counts.requests}; "
            f"{found[side][0].counts.bytes_down / _MIB:.0f} MiB down against "
            f"{found['read'][0].counts.bytes_down / _MIB:.0f}.",
        )


def _requests(verb: str, ran: Ran, count: int) -> Iterator[Result]:
    on_objects = sum(".parquet" in target for _, target, *_ in ran.counts.log)
    yield Result(
        case=f"{verb} of an absent key in {count} objects: requests an object",
        unit="requests",
        ours=on_objects / count,
        measure=Measure.VALUE,
        goal=1,
        note=f"{ran.counts.requests - on_objects} more for the folders.",
    )


_NAMES = {"polars": "Polars", "dataset": "pyarrow.dataset", "duckdb": "DuckDB"}


#: Where `make` has put a DuckDB for which there is an extension for object stores.
_DUCKDB_ROOT = Path(sys.prefix) / "duckdb-delta"


def httpfs() -> list[Path]:
    """DuckDB's extension for object stores, where it was installed."""
    return list((_DUCKDB_ROOT / "duckdb_extension_httpfs").rglob("*.duckdb_extension"))


# --- The sides, each in a process of its own ---


def _query(port: str) -> str:
    return f"endpoint_override=127.0.0.1:{port}&scheme=http&region=us-east-1"


def _add(port: str, _folder: Path) -> Callable[[], Any]:
    import secure_bloom as sb

    def run() -> Any:
        uri = f"s3://bench/large.parquet?{_query(port)}"
        (file,) = sb.add_bloom_filters(uri, columns=_FILTERS).files
        assert file.status == "added", file.error
        return {"bytes_before": file.bytes_before, "bytes_after": file.bytes_after}

    return run


def _add_small(port: str, _folder: Path) -> Callable[[], Any]:
    import secure_bloom as sb

    def run() -> Any:
        report = sb.add_bloom_filters(f"s3://bench/small?{_query(port)}", columns=_FILTERS)
        return {"added": sum(file.status == "added" for file in report.files)}

    return run


def _download_add_upload(port: str, folder: Path) -> Callable[[], Any]:
    import boto3

    import secure_bloom as sb

    path = folder / "downloaded.parquet"

    def run() -> Any:
        client = boto3.client("s3", endpoint_url=f"http://127.0.0.1:{port}")
        client.download_file("bench", "large.parquet", str(path))
        assert not sb.add_bloom_filters(path, columns=_FILTERS).failed
        client.upload_file(str(path), "bench", "large.parquet")
        path.unlink()

    return run


def _one_at_a_time() -> None:
    from secure_bloom.storage import paths

    paths._OBJECTS_AT_ONCE = 1


def _probe(port: str, _folder: Path, where: str = "many") -> Callable[[], Any]:
    import secure_bloom as sb

    def run() -> Any:
        report = sb.probe(f"s3://bench/{where}?{_query(port)}", "c0", _ABSENT)
        assert not report.failed
        return len(report.files)

    return run


def _read(port: str, _folder: Path, where: str = "many") -> Callable[[], Any]:
    import secure_bloom as sb

    uri = f"s3://bench/{where}?{_query(port)}"
    return lambda: sb.read_table(uri, where=f"c0 = '{_ABSENT}'").num_rows


def _alone(side: Callable[..., Callable[[], Any]]) -> Callable[[str, Path], Callable[[], Any]]:
    def made(port: str, folder: Path) -> Callable[[], Any]:
        _one_at_a_time()
        return side(port, folder, "some")

    return made


def _polars(port: str, _folder: Path) -> Callable[[], Any]:
    import polars as pl

    options = {
        "aws_endpoint_url": f"http://127.0.0.1:{port}",
        "aws_allow_http": "true",
        "aws_region": "us-east-1",
    }
    return lambda: (
        pl.scan_parquet("s3://bench/many/*.parquet", storage_options=options)
        .filter(pl.col("c0") == _ABSENT)
        .collect()
        .height
    )


def _dataset(port: str, _folder: Path) -> Callable[[], Any]:
    import pyarrow.compute as pc
    import pyarrow.dataset as ds
    from pyarrow import fs

    def run() -> Any:
        filesystem, _ = fs.FileSystem.from_uri(f"s3://bench/?{_query(port)}")
        return (
            ds.dataset("bench/many", filesystem=filesystem)
            .to_table(filter=pc.field("c0") == _ABSENT)
            .num_rows
        )

    return run


def _duckdb(port: str, _folder: Path) -> Callable[[], Any]:
    sys.path.insert(0, str(_DUCKDB_ROOT))
    import duckdb

    connection = duckdb.connect()
    connection.execute(
        f"LOAD '{httpfs()[0]}'; "
        "CREATE SECRET (TYPE s3, KEY_ID 'bench', SECRET 'bench', REGION 'us-east-1', "
        f"ENDPOINT '127.0.0.1:{port}', URL_STYLE 'path', USE_SSL false)"
    )
    query = f"SELECT * FROM 's3://bench/many/*.parquet' WHERE c0 = '{_ABSENT}'"
    return lambda: len(connection.execute(query).fetchall())


_SIDES: dict[str, Callable[[str, Path], Callable[[], Any]]] = {
    "add": _add,
    "add-small": _add_small,
    "download-add-upload": _download_add_upload,
    "probe": _probe,
    "read": _read,
    "probe-alone": _alone(_probe),
    "read-alone": _alone(_read),
    "polars": _polars,
    "dataset": _dataset,
    "duckdb": _duckdb,
}


def _most_memory() -> float:
    """MiB; what getrusage tells is at least what the process had that started this one."""
    status = Path("/proc/self/status").read_text()
    return int(re.search(r"VmHWM:\s*(\d+) kB", status)[1]) / 1024


def main(side: str, port: str, folder: str) -> None:
    """Run a side, and print its seconds, its memory and what it says."""
    run = _SIDES[side](port, Path(folder))
    started = time.perf_counter()
    said = run()
    seconds = time.perf_counter() - started
    print(json.dumps([seconds, _most_memory(), said]), flush=True)
    os._exit(0)


if __name__ == "__main__":
    main(*sys.argv[1:])
