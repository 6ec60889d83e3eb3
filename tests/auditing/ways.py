"""Ways in which values, bounds, filters, keys or copies of a sensitive column lie in a lake.

Each builds a small lake and says which finding tells of it.
"""

from __future__ import annotations

import base64
import bz2
import gzip
import hashlib
import io
import json
import lzma
import tarfile
import zipfile
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pyarrow as pa
import pyarrow.parquet as pq
import xxhash

import secure_bloom as sb
from secure_bloom.paimon.container import ColumnIndexes, FileIndex, Index
from testing.delta_logs import (
    CHECKPOINT,
    add,
    checkpoint,
    column,
    commit,
    lines,
    log_of,
    metadata,
    protocol,
    remove,
)
from testing.iceberg_tables import iceberg
from testing.surgery import Opened, edit_footer
from testing.tables import KEYRING, MASTER_KEYS, Mode, customers, keyring_json, write
from testing.thrift.metadata import ColumnIndex, Statistics
from tests.auditing.examples import (
    POLICY,
    SIGNED,
    Example,
    chunk_of,
    put_filter,
    rules,
    set_texts,
    some_filter,
    sound,
    with_rules,
)

ROWS = 60
EMAIL = "user1@example.com"
#: What a writer is told who forgets a column.
WITHOUT_EMAIL = {"k_finance": ["iban"]}
CHECKED = {"check_values": True}


@dataclass(frozen=True)
class Way:
    """``build`` makes the lake; one of ``told`` is found in it."""

    build: Callable[[Path], Example]
    told: tuple[str, ...]
    options: dict[str, Any] = field(default_factory=dict)


WAYS: dict[str, Way] = {}


def way(name: str, *told: str, **options: Any) -> Callable[[Callable[[Path], Any]], Any]:
    def register(build: Callable[[Path], Any]) -> Any:
        def made(folder: Path) -> Example:
            found = build(folder)
            return found if isinstance(found, Example) else Example(path=folder)

        WAYS[name] = Way(made, told, options)
        return build

    return register


def clear(path: Path, **columns: str) -> Path:
    """A table in clear, whose columns may be called otherwise."""
    path.parent.mkdir(parents=True, exist_ok=True)
    table = customers(ROWS)
    names = [columns.get(name, name) for name in table.column_names]
    return write(path, table.rename_columns(names))


def lake(folder: Path) -> Path:
    return sound(folder)


def delta(folder: Path, **fields: Any) -> Path:
    """A Delta table with one encrypted file, in two commits."""
    path = sound(folder)
    kinds = (column(name, "string") for name in ("email", "iban"))
    commit(folder, 0, protocol(), metadata(*kinds))
    commit(folder, 1, add(path.name, path.stat().st_size, **fields))
    return path


def bounds(value: str = EMAIL, column: str = "email") -> str:
    return json.dumps({"numRecords": 1, "minValues": {column: value}, "maxValues": {}})


def in_clear_inside(path: Path) -> Path:
    """A file with an encrypted footer, of which one sensitive column is in clear."""
    path.parent.mkdir(parents=True, exist_ok=True)
    return write(path, customers(ROWS), Mode.ENCRYPTED, column_keys=WITHOUT_EMAIL)


# Found by others.


@way("an old version with an encrypted footer", "column-in-clear")
def _(folder: Path) -> None:
    delta(folder)
    in_clear_inside(folder / "old.parquet")


@way(
    "an old version with an encrypted footer, without keys",
    "unchecked-footer",
    keys=None,
    without_keys=True,
    ignore=["unchecked-footer:nobody"],
)
def _(folder: Path) -> Example:
    # The live file is signed, so that only the old one cannot be looked at.
    path = sound(folder, Mode.SIGNED)
    commit(folder, 0, protocol(), metadata(column("email", "string")))
    commit(folder, 1, add(path.name, path.stat().st_size))
    in_clear_inside(folder / "old.parquet")
    return Example(path=folder, policy=SIGNED)


@way("a copy with an encrypted footer", "column-in-clear")
def _(folder: Path) -> None:
    lake(folder)
    in_clear_inside(folder / "x.parquet.bak")


for _name in (
    "good.parquet.bak",
    "_old.parquet",
    ".x.swp",
    "_temporary/0/x.parquet",
    "old_metadata",
    "old_common_metadata",
    "_old/_delta_log/x.parquet",
    ".sub/_delta_log/0/x.parquet",
    "_KEY_MATERIAL_FOR_x.parquet.json",
    ".x.parquet.crc",
):

    def _copy(folder: Path, name: str = _name) -> None:
        lake(folder)
        clear(folder / name)

    way(f"a copy called {_name}", "column-in-clear")(_copy)


@way("a copy in the log of a table", "column-in-clear")
def _(folder: Path) -> None:
    delta(folder)
    clear(folder / "_delta_log" / "copy.parquet")


@way("a copy in the log of a table that is called a checkpoint", "column-in-clear")
def _(folder: Path) -> None:
    delta(folder)
    clear(folder / "_delta_log" / f"{0:020}.checkpoint.parquet.bak")


@way("a copy without the first magic", "column-in-clear")
def _(folder: Path) -> None:
    lake(folder)
    path = clear(folder / "x.bak")
    path.write_bytes(b"XXXX" + path.read_bytes()[4:])


@way("a torn copy with a byte before its first page", "unchecked-copy")
def _(folder: Path) -> None:
    lake(folder)
    path = clear(folder / "x.bak")
    path.write_bytes(path.read_bytes()[:4] + b"\0" + path.read_bytes()[4:1500])


@way("a file of no version, with another case in its column's name", "column-alike-in-clear")
def _(folder: Path) -> None:
    delta(folder)
    write(
        folder / "old.parquet",
        customers(ROWS).rename_columns(["Email", "iban", "id", "city", "score"]),
        Mode.ENCRYPTED,
        column_keys=WITHOUT_EMAIL,
    )


ICEBERG = replace(POLICY, columns=rules(text="k_pii"))


@way("an Iceberg table, a file that no metadata name", "column-in-clear")
def _(folder: Path) -> Example:
    table = iceberg(folder)
    stray = folder / "db" / "t" / "data" / "stray.parquet"
    write(stray, pa.table({"text": [EMAIL]}))
    return Example(path=table.metadata_location, policy=ICEBERG)


@way("an Iceberg table, a file of an old snapshot", "column-in-clear")
def _(folder: Path) -> Example:
    table = iceberg(folder)
    for task in table.scan().plan_files():
        Path(task.file.file_path).write_bytes(b"")
    return Example(path=table.metadata_location, policy=ICEBERG)


@way("pages before a footer without row groups", "pages-stray-in-clear")
def _(folder: Path) -> None:
    path = lake(folder)
    pages = clear(folder / "y").read_bytes()[4:1500]
    (folder / "y").unlink()

    def change(it: Opened) -> bytes:
        it.footer.metadata.row_groups, it.footer.metadata.num_rows = [], 0
        return pages

    edit_footer(path, change)
    content = path.read_bytes()
    path.write_bytes(content)


@way("a filter of a sensitive column that the metadata give to another", "filter-wrong")
def _(folder: Path) -> None:
    path = lake(folder)
    put_filter(path, "city", some_filter(*(f"user{i}@example.com".encode() for i in range(ROWS))))


def _stray(folder: Path, content: bytes) -> None:
    edit_footer(lake(folder), lambda _: content)


@way("a column index to which nothing refers", "bounds-stray-in-clear")
def _(folder: Path) -> None:
    index = ColumnIndex.of(
        null_pages=[False], min_values=[b"user0"], max_values=[b"user9"], boundary_order=1
    )
    _stray(folder, index.encode())


@way("bounds to which nothing refers", "bounds-stray-in-clear")
def _(folder: Path) -> None:
    low, high = b"user0@example.com", b"user9@example.com"
    _stray(folder, Statistics.of(min_value=low, max_value=high, null_count=0).encode())


@way("a checkpoint with parsed bounds beside a null text", "table-log-in-clear")
def _(folder: Path) -> None:
    path = delta(folder)
    _checkpoint_with_parsed(log_of(folder) / f"{1:020}.checkpoint.parquet", path)


def _checkpoint_with_parsed(to: Path, path: Path) -> None:
    added = add(path.name, path.stat().st_size)["add"]
    parsed = {"numRecords": 1, "minValues": {"email": EMAIL}, "maxValues": {"email": EMAIL}}
    kinds = pa.struct(
        {name: pa.struct({"email": pa.string()}) for name in ("minValues", "maxValues")}
    )
    names = dict(
        CHECKPOINT.field("add").type and [(f.name, f.type) for f in CHECKPOINT.field("add").type]
    )
    names["stats_parsed"] = kinds
    schema = CHECKPOINT.set(CHECKPOINT.get_field_index("add"), pa.field("add", pa.struct(names)))
    meta = metadata(*(column(name, "string") for name in ("email", "iban")))
    rows = [protocol(), meta, {"add": added | {"stats": None, "stats_parsed": parsed}}]
    pq.write_table(pa.Table.from_pylist(rows, schema), to)


@way("a list of the values beside the column", "column-alike-in-clear")
def _(folder: Path) -> None:
    table = customers(ROWS)
    emails = pa.array([[value] for value in table["email"].to_pylist()])
    sound(folder, table=table.append_column("emails", emails))


@way("a short name with two letters swapped", "column-alike-in-clear")
def _(folder: Path) -> Example:
    table = customers(ROWS).rename_columns(["mail", "iban", "id", "city", "score"])
    table = table.append_column("mial", table["mail"])
    keys = {"k_pii": ["mail"], "k_finance": ["iban"]}
    sound(folder, table=table, column_keys=keys)
    return Example(
        path=folder, policy=replace(POLICY, columns=rules(mail="k_pii", iban="k_finance"))
    )


# Thirty more.


def _packed(name: str, pack: Callable[[bytes], bytes], told: str = "unchecked-copy") -> None:
    @way(f"a copy packed as {name}", told)
    def _(folder: Path) -> None:
        lake(folder)
        path = clear(folder / name)
        path.write_bytes(pack(path.read_bytes()))


def _zipped(data: bytes, method: int = zipfile.ZIP_DEFLATED) -> bytes:
    with io.BytesIO() as content:
        with zipfile.ZipFile(content, "w", method) as archive:
            archive.writestr("readme.txt", "text")
            archive.writestr("x.parquet", data)
        return content.getvalue()


def _tarred(data: bytes, mode: str = "w") -> bytes:
    with io.BytesIO() as content:
        with tarfile.open(fileobj=content, mode=mode) as archive:  # type: ignore[call-overload]
            info = tarfile.TarInfo("x.parquet")
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
        return content.getvalue()


_packed("x.parquet.gz", gzip.compress)
_packed("x.parquet.bz2", bz2.compress)
_packed("x.parquet.xz", lzma.compress)
_packed("x.parquet.zst", lambda data: pa.compress(data, "zstd", asbytes=True))
_packed("x.zip", _zipped)
_packed("x.tar", _tarred)
_packed("x.tar.gz", lambda data: _tarred(data, "w:gz"))
_packed("x.dump", lambda data: bytes(70_000) + data, "column-in-clear")
_packed("x.parquet.part", lambda data: data[:-1])


@way("a copy with bytes behind its footer", "unchecked-copy")
def _(folder: Path) -> None:
    lake(folder)
    path = clear(folder / "x.bak")
    path.write_bytes(path.read_bytes() + b"\n")


@way("a sealed column whose pages are in clear", "pages-in-clear")
def _(folder: Path) -> None:
    path = lake(folder)
    page = clear(folder / "y").read_bytes()[4:100]
    (folder / "y").unlink()
    with (path).open("r+b") as file:
        # The first chunk is that of `email`.
        file.seek(4)
        file.write(page)


def _column_called(name: str) -> None:
    @way(f"a column called {name.encode('unicode_escape').decode()}", "column-alike-in-clear")
    def _(folder: Path) -> None:
        table = customers(ROWS)
        sound(folder, table=table.append_column(name, table["email"]))


_column_called("\u0435mail")  # Cyrillic
_column_called("\uff45mail")  # wide
_column_called("e\u200bmail")  # no width
_column_called("\u00e9mail")


@way("a column of a structure under one flat name", "column-alike-in-clear")
def _(folder: Path) -> Example:
    table = customers(ROWS)
    nested = pa.array([{"email": value} for value in table["email"].to_pylist()])
    table = table.append_column("customer_email", table["email"]).append_column("customer", nested)
    keys = {"k_pii": ["email", "customer.email"], "k_finance": ["iban"]}
    sound(folder, table=table, column_keys=keys)
    columns = rules(**{"email": "k_pii", "iban": "k_finance", "customer.email": "k_pii"})
    return Example(path=folder, policy=replace(POLICY, columns=columns))


# Packed in other ways, and archives that cannot be unpacked.


def _many_members(data: bytes) -> bytes:
    with io.BytesIO() as content:
        with zipfile.ZipFile(content, "w") as archive:
            for number in range(300):
                archive.writestr(f"{number}.txt", "text")
            archive.writestr("x.parquet", data)
        return content.getvalue()


_packed("x.b64", base64.encodebytes)
_packed("x.gz.gz", lambda data: gzip.compress(gzip.compress(data)))
_packed("x.lz4", lambda data: _streamed(data, "lz4"))
_packed("many.zip", _many_members)
_packed("in.zip.gz", lambda data: gzip.compress(_zipped(data)))
_packed("x.7z", lambda data: b"7z\xbc\xaf\x27\x1c" + data[::-1])
_packed("x.rar", lambda data: b"Rar!\x1a\x07\x01\x00" + data[::-1])
_packed("x.parquet.sz", lambda data: b"\xff\x06\x00\x00sNaPpY" + data[::-1])


def _streamed(data: bytes, codec: str) -> bytes:
    content = pa.BufferOutputStream()
    with pa.CompressedOutputStream(content, codec) as stream:
        stream.write(data)
    return content.getvalue().to_pybytes()


@way("a copy whose footer cannot be decoded", "unchecked-copy")
def _(folder: Path) -> None:
    lake(folder)
    path = clear(folder / "x.bak")
    content = path.read_bytes()
    length = int.from_bytes(content[-8:-4], "little")
    path.write_bytes(content[: -8 - length] + b"\xff" * length + content[-8:])


# The log of a Delta table.


@way("bounds in an entry that was removed", "table-log-in-clear")
def _(folder: Path) -> None:
    path = delta(folder)
    commit(folder, 2, add("old.parquet", stats=bounds()))
    commit(folder, 3, remove("old.parquet", stats=bounds()))
    commit(folder, 4, remove(path.name), add(path.name, path.stat().st_size))


@way("bounds in a compacted log", "table-log-in-clear")
def _(folder: Path) -> None:
    path = delta(folder)
    (log_of(folder) / f"{0:020}.{1:020}.compacted.json").write_text(
        lines([protocol(), metadata(column("email", "string")), add(path.name, 1, stats=bounds())])
    )


@way("bounds in the checksum of a version", "table-log-in-clear")
def _(folder: Path) -> None:
    path = delta(folder)
    files = [add(path.name, 1, stats=bounds())["add"]]
    (log_of(folder) / f"{1:020}.crc").write_text(json.dumps({"numFiles": 1, "allFiles": files}))


@way("bounds in a checkpoint of an older version", "table-log-in-clear")
def _(folder: Path) -> None:
    path = delta(folder)
    meta = metadata(column("email", "string"))
    old = log_of(folder) / f"{0:020}.checkpoint.parquet"
    checkpoint(old, protocol(), meta, add(path.name, 1, stats=bounds()))


@way("bounds in a sidecar file that nothing names", "table-log-in-clear")
def _(folder: Path) -> None:
    path = delta(folder)
    (log_of(folder) / "_sidecars").mkdir()
    checkpoint(log_of(folder) / "_sidecars" / "a.parquet", add(path.name, 1, stats=bounds()))


@way("bounds in a commit that was only staged", "table-log-in-clear")
def _(folder: Path) -> None:
    delta(folder)
    staged = log_of(folder) / "_staged_commits"
    staged.mkdir()
    (staged / f"{2:020}.uuid.json").write_text(lines([add("b", 1, stats=bounds())]))


@way("the condition of an operation", "table-log-in-clear")
def _(folder: Path) -> None:
    delta(folder)
    parameters = {"predicate": json.dumps([f"(email#12 = '{EMAIL}')"])}
    info = {"operation": "DELETE", "operationParameters": parameters}
    commit(folder, 2, {"commitInfo": info})


@way("a constraint of the table", "table-log-in-clear")
def _(folder: Path) -> None:
    delta(folder)
    changed = metadata(column("email", "string"), column("iban", "string"))
    changed["metaData"]["configuration"]["delta.constraints.c"] = f"email <> '{EMAIL}'"
    commit(folder, 2, changed)


@way("the default of a column", "table-log-in-clear")
def _(folder: Path) -> None:
    delta(folder)
    commit(folder, 2, metadata(column("email", "string", CURRENT_DEFAULT=f"'{EMAIL}'")))


@way("values of a partition in an old commit", "table-log-in-clear")
def _(folder: Path) -> None:
    path = delta(folder)
    commit(folder, 2, add("old", 1, partitionValues={"email": EMAIL}), remove("old"))
    commit(folder, 3, add(path.name, path.stat().st_size))


@way("a change data file", "column-in-clear")
def _(folder: Path) -> None:
    delta(folder)
    clear(folder / "_change_data" / "cdc-1.parquet")


@way("the condition of a merge, with the name of a table", "table-log-in-clear")
def _(folder: Path) -> None:
    delta(folder)
    matched = json.dumps([{"predicate": f"t.email = '{EMAIL}'", "actionType": "delete"}])
    info = {"operation": "MERGE", "operationParameters": {"matchedPredicates": matched}}
    commit(folder, 2, {"commitInfo": info})


@way("a column that the table computes", "column-derived-in-clear")
def _(folder: Path) -> None:
    delta(folder)
    computed = column("start", "string", **{"delta.generationExpression": "substring(email, 1, 3)"})
    commit(folder, 2, metadata(column("email", "string"), column("iban", "string"), computed))


for _name in ("_delta_log.bak/1.json", "_old/_delta_log/1.json", "backup.txt"):

    def _log(folder: Path, name: str = _name) -> None:
        delta(folder)
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(lines([add("x", 1, stats=bounds())]))

    way(f"a commit of a log called {_name}", "table-log-in-clear")(_log)


@way("a checkpoint in no log", "table-log-in-clear")
def _(folder: Path) -> None:
    lake(folder)
    meta = metadata(column("email", "string"))
    checkpoint(folder / "_checkpoint", protocol(), meta, add("x", 1, stats=bounds()))


# Iceberg's own files.


@way("bounds in the manifest of an old snapshot", "table-log-in-clear")
def _(folder: Path) -> Example:
    table = iceberg(folder)
    with table.transaction() as change:
        change.delete("id >= 0")
    location = table.refresh().metadata_location
    return Example(path=location, policy=ICEBERG)


# Folders.


@way("a folder named by a value, without a data file", "partition-in-clear")
def _(folder: Path) -> None:
    lake(folder)
    below = folder / "_temporary" / f"email={EMAIL}"
    below.mkdir(parents=True)
    (below / "part").write_text("")


@way("a folder named by a value under another spelling", "partition-in-clear")
def _(folder: Path) -> Example:
    below = folder / f"E-mail={EMAIL}"
    below.mkdir()
    table = customers(ROWS).drop_columns("email")
    sound(below, table=table, column_keys=WITHOUT_EMAIL)
    return Example(path=folder)


@way("a summary that spells the column otherwise", "summary-in-clear")
def _(folder: Path) -> None:
    lake(folder)
    table = customers(ROWS)
    _summarize(table.rename_columns(["Email", "c1", *table.column_names[2:]]), folder / "_metadata")


def _summarize(table: pa.Table, path: Path) -> None:
    collected: list[Any] = []
    pq.write_to_dataset(table, path.parents[1] / "plain", metadata_collector=collected)
    pq.write_metadata(table.schema, path, metadata_collector=collected)


for _name in ("old/_metadata", ".old/_common_metadata"):

    def _summary(folder: Path, name: str = _name) -> None:
        inside = folder / "table"
        inside.mkdir()
        lake(inside)
        (inside / name).parent.mkdir()
        _summarize(customers(ROWS), inside / name)

    way(f"a summary called {_name}", "column-in-clear")(_summary)


@way("an index that spells the column otherwise", "paimon-index-in-clear")
def _(folder: Path) -> None:
    _index(folder, "EMAIL", "x.parquet.index")


def _index(folder: Path, column: str, name: str) -> None:
    lake(folder)
    body = (4).to_bytes(4, "big") + bytes(8)
    columns = ColumnIndexes(name=column, indexes=(Index(type="bloom-filter", body=body),))
    (folder / name).parent.mkdir(exist_ok=True)
    (folder / name).write_bytes(FileIndex(columns=(columns,)).to_bytes())


for _name in (".old/x.parquet.index", "x.parquet.index.bak"):

    def _stray_index(folder: Path, name: str = _name) -> None:
        _index(folder, "email", name)

    way(f"an index called {_name}", "paimon-index-in-clear")(_stray_index)


# Keys.


@way("a keyring", "keys-in-lake")
def _(folder: Path) -> None:
    lake(folder)
    (folder / "_keys.json").write_text(keyring_json({"k_other": b"another-16b-key."}))


@way("master keys in properties", "keys-in-lake")
def _(folder: Path) -> None:
    lake(folder)
    key = base64.b64encode(b"another-16b-key.").decode()
    (folder / "spark-defaults.conf").write_text(f"parquet.encryption.key.list  k_pii: {key}\n")


@way("a master key in a text", "keys-in-lake")
def _(folder: Path) -> None:
    lake(folder)
    (folder / "notes.txt").write_text(f"the key is {MASTER_KEYS['k_pii'].hex().upper()}\n")


@way("a master key in a footer", "keys-in-lake")
def _(folder: Path) -> Example:
    path = sound(folder, Mode.SIGNED)
    set_texts(path, {"note": base64.b64encode(MASTER_KEYS["k_pii"]).decode()})
    return Example(path=path, policy=SIGNED)


@way("a master key in an encrypted footer", "keys-in-lake")
def _(folder: Path) -> None:
    key = base64.b64encode(MASTER_KEYS["k_pii"]).decode()
    sound(folder, table=customers(ROWS).replace_schema_metadata({"note": key}))


_OTHER_KEYRING = keyring_json({"k_other": b"another-16b-key."}).encode()
for _name, _content in {
    "k.json.gz": gzip.compress(_OTHER_KEYRING),
    "k.zip": _zipped(_OTHER_KEYRING),
    "UTF-16": _OTHER_KEYRING.decode().encode("utf-16"),
    "k.json of two MiB": bytes(2 << 20) + _OTHER_KEYRING,
    ".env": b"VAULT_TOKEN=hvs.CAESIJlUdC5Cf3aUcHk5aGtlbG9uZ3N0cmluZw\n",
    "credentials": b"aws_secret_access_key = " + b"x" * 40,
    "spark.conf": b"parquet.encryption.key.access.token  s.abcdef\n",
    "keys.jks": b"\xfe\xed\xfe\xed\x00\x00\x00\x02" + bytes(100),
    "keys.p12": b"\x30\x82\x0a\x00\x02\x01\x03\x30\x82" + bytes(100),
}.items():

    def _keys(folder: Path, content: bytes = _content) -> None:
        lake(folder)
        (folder / "k").write_bytes(content)

    way(f"keys in a file such as {_name}", "keys-in-lake")(_keys)


# Values, which are looked for on request.


def _value_column(name: str, form: Callable[[bytes], Any]) -> None:
    @way(f"the values as {name} in another column", "values-in-clear", **CHECKED)
    def _(folder: Path) -> None:
        table = customers(ROWS)
        made = pa.array([form(value.encode()) for value in table["email"].to_pylist()])
        sound(folder, table=table.append_column("x", made))


_value_column("they are", bytes.decode)
_value_column("capitals", lambda value: value.decode().upper())
_value_column("a part of a text", lambda value: f"mail to {value.decode()} sent")
_value_column("SHA-256", lambda value: hashlib.sha256(value).hexdigest())
_value_column("MD5 in bytes", lambda value: hashlib.md5(value).digest())
_value_column("Base64", lambda value: base64.b64encode(value).decode())
_value_column("an element of a list", lambda value: [value.decode()])
_value_column("hexadecimal", bytes.hex)
_value_column("UTF-16", lambda value: value.decode().encode("utf-16-le"))
_value_column("a part of a URL", lambda value: f"/find?q={quote(value)}&n=1")
_value_column("SHA3-256", lambda value: hashlib.sha3_256(value).hexdigest())
_value_column("XXH64", lambda value: int.from_bytes(_hash_of_spark(value), "big", signed=True))


def _hash_of_spark(value: bytes) -> bytes:
    return xxhash.xxh64_digest(value, 42)


def _numbers_as(name: str, form: Callable[[int], Any]) -> None:
    @way(f"numbers as {name} in another column", "values-in-clear", **CHECKED)
    def _(folder: Path) -> Example:
        numbers = [10**10 + i * 7_919_333 for i in range(ROWS)]
        table = customers(ROWS).append_column("ssn", pa.array(numbers))
        table = table.append_column("x", pa.array([form(number) for number in numbers]))
        keys = {"k_pii": ["email", "ssn"], "k_finance": ["iban"]}
        path = sound(folder, table=table, column_keys=keys)
        return Example(path=path, policy=with_rules(ssn="k_pii"))


_numbers_as("they are", int)
_numbers_as("texts", str)
_numbers_as("a part of a text", lambda number: f"no. {number}, paid")

_EMAILS = "\n".join(customers(ROWS)["email"].to_pylist()).encode()
for _name, _content in {
    "x.csv": b"id;email\n" + _EMAILS.replace(b"\n", b"\n1;"),
    "x.csv.gz": gzip.compress(_EMAILS),
    "x.json": json.dumps({"rows": _EMAILS.decode().split()}).encode(),
    "x.bin": _EMAILS.replace(b"\n", b""),
    "job.log": f"row with {EMAIL} failed".encode(),
}.items():

    def _other(folder: Path, name: str = _name, content: bytes = _content) -> None:
        lake(folder)
        (folder / name).write_bytes(content)

    way(f"values in {_name}", "values-in-clear", **CHECKED)(_other)


@way("values in the name of a folder", "values-in-clear", **CHECKED)
def _(folder: Path) -> None:
    below = folder / f"of {EMAIL.replace('@', '%40')}"
    below.mkdir()
    lake(below)


@way("values in what a user wrote into a commit", "values-in-clear", **CHECKED)
def _(folder: Path) -> None:
    delta(folder)
    commit(folder, 2, {"commitInfo": {"operation": "WRITE", "userMetadata": f"for {EMAIL}"}})


@way("a column whose name is a value", "values-in-clear", **CHECKED)
def _(folder: Path) -> None:
    sound(folder, table=customers(ROWS).append_column(EMAIL, pa.array(range(ROWS))))


@way("values in the texts of an encrypted footer", "values-in-clear", **CHECKED)
def _(folder: Path) -> None:
    sound(folder, table=customers(ROWS).replace_schema_metadata({"first": EMAIL}))


@way("values to which nothing refers", "values-in-clear", **CHECKED)
def _(folder: Path) -> None:
    _stray(folder, _EMAILS)


@way("values in a file without a sensitive column", "values-in-clear", **CHECKED)
def _(folder: Path) -> None:
    lake(folder)
    table = pa.table({"contact": customers(ROWS)["email"], "iban": customers(ROWS)["iban"]})
    write(folder / "y.parquet", table, Mode.ENCRYPTED, column_keys={"k_finance": ["iban"]})


@way("values in key-value metadata", "values-in-clear", **CHECKED)
def _(folder: Path) -> Example:
    path = sound(folder, Mode.SIGNED)
    set_texts(path, {"sample": f"first rows: {EMAIL}, ..."})
    return Example(path=path, policy=SIGNED)


@way("a value in the name of the writer", "values-in-clear", **CHECKED)
def _(folder: Path) -> Example:
    path = sound(folder, Mode.SIGNED)
    edit_footer(path, lambda it: setattr(it.footer.metadata, "created_by", f"by {EMAIL}"))
    return Example(path=path, policy=SIGNED)


@way("bounds of the column given to another", "values-in-clear", **CHECKED)
def _(folder: Path) -> None:
    path = sound(folder)

    def change(it: Opened) -> None:
        shown = chunk_of(it, "city").meta_data
        assert shown is not None
        emails = sorted(customers(ROWS)["email"].to_pylist())
        shown.statistics = Statistics.of(
            min_value=emails[0].encode(), max_value=emails[-1].encode(), null_count=0
        )

    edit_footer(path, change)


__all__ = ["KEYRING", "WAYS", "Way", "sb"]
