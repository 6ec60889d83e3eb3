"""What is fed with inputs: one function for each kind of bytes or text that comes from elsewhere.

A target takes bytes and may raise a SecureBloomError; anything else is a finding.  Its seeds are
real ones, made here, so that no run depends on files of another.
"""

from __future__ import annotations

import functools
import io
import json
import os
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from campaigns.fuzzing import kernels
from secure_bloom.bloom.split_block import SplitBlockBloomFilter
from secure_bloom.bloom.stored import decode_bloom_filter, encode_bloom_filter, read_bloom_filter
from secure_bloom.encryption import cipher
from secure_bloom.encryption.cipher import ModuleType
from secure_bloom.encryption.file_keys import DataKey, KeyMaterial, KeyResolver
from secure_bloom.encryption.file_keys.column_cipher import ColumnCipher
from secure_bloom.encryption.file_keys.wrapping import KeyEncryptionKey, wrap_once, wrap_twice
from secure_bloom.encryption.kms import ExplicitKeys, Keyring
from secure_bloom.encryption.policy import draft_policy
from secure_bloom.errors import SecureBloomError
from secure_bloom.hudi.record_keys.bloom_filter import SimpleBloomFilter
from secure_bloom.hudi.record_keys.dynamic import DynamicBoundedBloomFilter
from secure_bloom.hudi.record_keys.packed_keys import PackedKeys
from secure_bloom.lakes import snapshot
from secure_bloom.lakes.deletion_vectors import DeletedRows, decode_z85, positions
from secure_bloom.lakes.delta.live_file import LiveFile
from secure_bloom.lakes.hive_partitions import partition_fields, partition_values
from secure_bloom.lakes.streaming_sink import committed_files
from secure_bloom.paimon.bloom_filter64 import BloomFilter64
from secure_bloom.paimon.container import BLOOM_FILTER, FileIndex, Index
from secure_bloom.paimon.data_types import DataType
from secure_bloom.paimon.index_readers import as_predicate, may_match
from secure_bloom.paimon.physical_values import typed_forms
from secure_bloom.parquet.column_values import read_entries
from secure_bloom.parquet.footer.chunks import Chunk
from secure_bloom.parquet.footer.columns import SchemaCache
from secure_bloom.parquet.footer.edit import FilterPlace, with_filters
from secure_bloom.parquet.footer.locate import MAGIC, MAGIC_ENCRYPTED, read_tail
from secure_bloom.parquet.footer.opened import Footer, read_footer, unlock_to_read
from secure_bloom.parquet.footer.scan import scan_footer
from secure_bloom.parquet.literals import physical_values
from secure_bloom.parquet.schema import leaves
from secure_bloom.parquet.structures.wire_fields import find_fields
from secure_bloom.predicates.binding import bind
from secure_bloom.predicates.from_text import from_text
from secure_bloom.storage import CountedFile, InputFile
from testing.thrift import trees
from testing.thrift.metadata import FileMetaData

KEY = b"fuzz-key-16bytes"
KEYRING = Keyring(master_keys={"k": KEY}, explicit=ExplicitKeys(footer=KEY, columns={"s": KEY}))


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """One kind of input: its seeds, what is done with it, and what an input costs, about.

    With ``is_tree`` an input is a Thrift structure, mutated as such.
    """

    seeds: Callable[[], Sequence[bytes]]
    run: Callable[[bytes], object]
    microseconds: int
    is_text: bool = False
    is_tree: bool = False


class BytesFile(InputFile):
    """Bytes as a file."""

    def __init__(self, content: bytes) -> None:
        super().__init__(
            path="fuzz", location="fuzz", name="fuzz", size=len(content), identity=("fuzz",)
        )
        self._content = content

    def check_unchanged(self) -> None:
        """It never is."""

    def close(self) -> None:
        """Nothing to do."""

    def _read(self, offset: int, length: int) -> bytes:
        return self._content[offset : offset + length]

    def _read_sibling(self, _name: str, _limit: int) -> bytes | None:
        return None


_TABLE = pa.table(
    {
        "i": pa.array([1, None, 3] * 8, pa.int64()),
        "s": pa.array(["a", "bb", None] * 8),
        "l": pa.array([[1.5], [], None] * 8, pa.list_(pa.float64())),
        "f": pa.array([bytes(4)] * 24, pa.binary(4)),
    }
)


@functools.cache
def _file(**options: object) -> bytes:
    """A Parquet file with filters and page indexes."""
    content = io.BytesIO()
    pq.write_table(
        _TABLE,
        content,
        row_group_size=12,
        write_page_index=True,
        bloom_filter_options={"i": True, "s": {"ndv": 3}},
        **options,
    )
    return content.getvalue()


@functools.cache
def _files() -> list[bytes]:
    return [
        _file(compression="none", use_dictionary=False),
        _file(compression="snappy"),
        _file(compression="zstd", data_page_version="2.0"),
    ]


def _tail(content: bytes) -> bytes:
    with BytesFile(content) as file:
        return read_tail(file).clear


def _footers() -> list[bytes]:
    return [_tail(content) for content in _files()]


def _whole(body: bytes, magic: bytes = MAGIC) -> bytes:
    return magic + body + len(body).to_bytes(4, "little") + magic


_AAD = b"fuzz"


def _sealed(plain: bytes) -> bytes:
    """An encrypted footer that authenticates, whatever it holds."""
    algorithm = bytes.fromhex("1c1c2804") + _AAD + bytes.fromhex("000000")
    aad = cipher.module_aad(_AAD, ModuleType.FOOTER)
    return _whole(algorithm + cipher.encrypt_gcm(plain, KEY, aad), MAGIC_ENCRYPTED)


def _open_all(content: bytes, keys: Keyring | None = None) -> None:
    """As `add`, `probe` and `inspect` open a file."""
    with BytesFile(content) as file:
        found = KeyResolver(keys).for_file()
        footer = unlock_to_read(read_tail(file), found)
        for row_group in range(len(footer.row_groups)):
            for column in range(len(footer.leaves)):
                chunk = footer.chunk(row_group, column)
                _edit(footer, chunk)
                read_bloom_filter(file, chunk)


def _edit(footer: Footer, chunk: Chunk) -> None:
    """Enter a filter: it is where it was entered, and all bytes around it are the old ones."""
    new = with_filters(footer, [FilterPlace(chunk, 7, 11)])
    edited = scan_footer(new)
    listed = edited.row_groups[chunk.row_group].columns[chunk.column]
    meta_data = listed.meta_data
    if meta_data is not None and (meta_data.bloom_filter_offset, meta_data.bloom_filter_length) != (
        7,
        11,
    ):
        raise AssertionError("the filter was not entered")


@functools.cache
def _scanner() -> SchemaCache:
    """What is known after sound files were read: only then the C extension scans footers."""
    known = SchemaCache()
    for content in _files():
        read_footer(CountedFile(BytesFile(content)), KeyResolver(None), known)
    return known


def _scan_all(content: bytes, keys: Keyring | None = None) -> None:
    """As `read` opens a file: in the C extension if it was built."""
    footer = read_footer(CountedFile(BytesFile(content)), KeyResolver(keys), _scanner())
    for row_group in range(len(footer.row_groups)):
        for column in range(len(footer.columns.leaves)):
            footer.chunk_to_read(row_group, column)


def _footer_tree(plain: bytes) -> None:
    data = _files()[0]
    both(lambda: _open_all(data + _whole(plain)), lambda: _open_all(_sealed(plain), KEYRING))


def _footer_scan(plain: bytes) -> None:
    both(lambda: _scan_all(_whole(plain)), lambda: _scan_all(_sealed(plain), KEYRING))


def both(*parts: Callable[[], object]) -> None:
    """Each of them, whether or not the ones before raise one of our errors."""
    for part in parts:
        try:
            part()
        except SecureBloomError:
            continue


@functools.cache
def _chunks(number: int) -> list[Chunk]:
    with BytesFile(_files()[number]) as file:
        keys = KeyResolver(None).for_file()
        footer = unlock_to_read(read_tail(file), keys)
        return [footer.chunk(0, column) for column in range(len(footer.leaves))]


def _pages(content: bytes) -> None:
    """The first byte says which file's footer the pages have."""
    number = content[0] % 3 if content else 0
    with BytesFile(content[1:] or b"\0") as file:
        for chunk in _chunks(number):
            both(lambda chunk=chunk: _consume(file, chunk))  # type: ignore[misc]


def _consume(file: InputFile, chunk: Chunk) -> None:
    for entries in read_entries(file, chunk).entries:
        len(entries)


def _numbered_files() -> list[bytes]:
    return [bytes([number]) + content for number, content in enumerate(_files())]


def _cipher() -> ColumnCipher:
    return ColumnCipher(
        key=DataKey(key=KEY, name="k"),
        file_aad=_AAD,
        uses_ctr=False,
        row_group_ordinal=0,
        column_ordinal=0,
    )


def _filters() -> list[bytes]:
    bloom_filter = SplitBlockBloomFilter(2)
    bloom_filter.insert(b"x")
    return [encode_bloom_filter(bloom_filter, None)]


def _filter(data: bytes) -> None:
    sealed = _cipher()
    header = sealed.encrypt(ModuleType.BLOOM_FILTER_HEADER, data[:64])
    bitset = sealed.encrypt(ModuleType.BLOOM_FILTER_BITSET, data[-64:])
    both(
        lambda: decode_bloom_filter(data, None).check(b"x"),
        lambda: decode_bloom_filter(header + bitset, sealed).check(b"x"),
        lambda: decode_bloom_filter(data, sealed),
    )


def _materials() -> list[bytes]:
    kek = KeyEncryptionKey.create(KEYRING, "k")
    return [
        wrap_once(KEY, KEYRING, "k", is_footer_key=True).serialize(),
        wrap_twice(KEY, kek, is_footer_key=True).serialize(),
        json.dumps(
            {"keyMaterialType": "PKMT1", "internalStorage": False, "keyReference": "a"}
        ).encode(),
        b"kc1",
    ]


def _material(data: bytes) -> None:
    both(
        lambda: KeyMaterial.parse(data),
        lambda: KeyResolver(KEYRING).for_file(lambda: {"a": data}).footer_key(data),
        lambda: KeyResolver(None).for_file().describe(data),
    )


def _as_file(read: Callable[[Path], object]) -> Callable[[bytes], None]:
    def run(data: bytes) -> None:
        SCRATCH.write_bytes(data)
        read(SCRATCH)

    return run


_MEMORY = Path("/dev/shm")
SCRATCH = (_MEMORY if _MEMORY.is_dir() else Path(tempfile.gettempdir())) / f"fuzz-{os.getpid()}"

_KEYRING_TEXT = json.dumps(
    {
        "version": 1,
        "master_keys": {"k": "MDEyMzQ1Njc4OWFiY2RlZg=="},
        "data_keys": {"kc1": "MDEyMzQ1Njc4OWFiY2RlZg=="},
        "explicit": {
            "footer": "MDEyMzQ1Njc4OWFiY2RlZg==",
            "columns": {"s": "MDEyMzQ1Njc4OWFiY2RlZg=="},
            "aad_prefix": "p",
        },
    }
).encode()
_POLICY_TEXT = b"""[kms]
client = "keyring"
keyring = "k.json"
[footer]
key = "k"
mode = "plaintext"
[encryption]
algorithm = "AES_GCM_CTR_V1"
data_key_bits = 256
[columns.s]
key = "k"
bloom = { fpp = 0.01, max_bytes = 1024 }
[columns."a.b"]
bloom = true
"""


def _condition(data: bytes) -> None:
    text = data.decode("utf-8", "surrogateescape")
    bind(from_text(text), _SCHEMA)


_SCHEMA = pa.schema(
    [
        ("a", pa.int64()),
        ("email", pa.string()),
        ("day", pa.date32()),
        ("at", pa.timestamp("us", "UTC")),
        ("d", pa.decimal128(9, 2)),
        ("f", pa.float32()),
        ("b", pa.binary()),
    ]
)
_CONDITIONS = [
    b"email = 'a@x' and (a in (1, 2, null) or not day < 2024-01-01)",
    b"f >= 1.5 and d != 12.50 or at = '2024-03-01T10:00:00Z' and b = 'hex:00ff'",
    b'"a" is not null and not (a = 5 or a not in (7)) and f <> -0.0',
]


def _hudi_seeds() -> list[bytes]:
    simple, dynamic = SimpleBloomFilter(10, 0.01), DynamicBoundedBloomFilter(2, 0.1, 8)
    for key in ("a", "b", "c"):
        simple.insert(key)
        dynamic.insert(key)
    return [b"S" + simple.serialize().encode(), b"D" + dynamic.serialize().encode()]


def _hudi(data: bytes) -> None:
    kind = SimpleBloomFilter if data[:1] == b"S" else DynamicBoundedBloomFilter
    found = kind.parse(data[1:].decode("latin-1"))
    if found.byte_count < _LARGE:
        found.check_packed(PackedKeys.of([b"a", b"key"]))
        found.fpp()


#: Filters are that large at most where each of thousands of inputs has one.
_LARGE = 1 << 20


def _paimon_seeds() -> list[bytes]:
    bloom_filter = BloomFilter64.sized(3, 0.1)
    bloom_filter.insert_hash(12345)
    bitmap = bytes.fromhex("01") + bytes(4) + (1).to_bytes(4, "big") + bytes(16)
    index = FileIndex().with_indexes(
        [
            ("i", Index(type=BLOOM_FILTER, body=bloom_filter.to_bytes())),
            ("s", Index(type="bitmap", body=bitmap)),
            ("e", Index(type=BLOOM_FILTER, body=None)),
        ]
    )
    return [index.to_bytes()]


_TYPES = typed_forms({"i": DataType.parse("BIGINT"), "s": DataType.parse("STRING")})
_ASKED = as_predicate([("i", "=", 5)])


def _paimon(data: bytes) -> None:
    index = FileIndex.from_bytes(data)
    index.to_bytes()
    may_match(index, _ASKED, _TYPES)


def _table(log: str, name: str) -> Path:
    """A folder with a log in which one file is to be written; the file."""
    folder = SCRATCH.with_name(f"{SCRATCH.name}-{log}") / log
    folder.mkdir(parents=True, exist_ok=True)
    return folder / name


_SCHEMA_STRING = json.dumps(
    {
        "type": "struct",
        "fields": [
            {"name": "id", "type": "long", "nullable": True, "metadata": {}},
            {"name": "day", "type": "date", "nullable": True, "metadata": {}},
            {
                "name": "tags",
                "type": {"type": "array", "elementType": "string", "containsNull": True},
                "nullable": True,
                "metadata": {},
            },
        ],
    }
)
_COMMIT = [
    {
        "protocol": {
            "minReaderVersion": 3,
            "minWriterVersion": 7,
            "readerFeatures": ["deletionVectors"],
            "writerFeatures": ["deletionVectors"],
        }
    },
    {
        "metaData": {
            "id": "1",
            "format": {"provider": "parquet", "options": {}},
            "schemaString": _SCHEMA_STRING,
            "partitionColumns": ["day"],
            "configuration": {"delta.columnMapping.mode": "none"},
        }
    },
    {
        "add": {
            "path": "day=2024-03-01/a%20b.parquet",
            "partitionValues": {"day": "2024-03-01"},
            "size": 9,
            "modificationTime": 0,
            "dataChange": True,
            "stats": json.dumps({"numRecords": 3, "minValues": {"id": 1}}),
            "deletionVector": {
                "storageType": "u",
                "pathOrInlineDv": "ab^-aqEH.-t@S}K{vb[*k^",
                "offset": 4,
                "sizeInBytes": 40,
                "cardinality": 6,
            },
        }
    },
    {"remove": {"path": "b.parquet", "dataChange": True, "deletionTimestamp": 0}},
    {"commitInfo": {"inCommitTimestamp": 1, "operation": "WRITE"}},
]
_SINK = b"""v1
{"path":"file:///t/a%20b.parquet","size":9,"isDir":false,"action":"add"}
{"path":"file:///t/a%20b.parquet","size":9,"isDir":false,"action":"delete"}
"""


def _lines(actions: Sequence[object]) -> bytes:
    return "\n".join(map(json.dumps, actions)).encode()


def _delta_log(data: bytes) -> None:
    commit = _table("_delta_log", f"{0:020}.json")
    commit.write_bytes(data)
    found = snapshot(commit.parents[1])
    for file in () if found is None else found.files:
        both(lambda file=file: _deleted(file, commit.parents[1]))  # type: ignore[misc]


def _deleted(file: LiveFile, folder: Path) -> None:
    vector = file.deletion_vector
    if vector is not None:
        DeletedRows(folder=str(folder), vector=vector).positions(1000)


def _sink(data: bytes) -> None:
    batch = _table("_spark_metadata", "0")
    batch.write_bytes(data)
    committed_files(str(batch.parents[1]))


#: An array, runs in two parts of 64 bits, and a full bitset.
_RUN = bytes.fromhex("3b300000 01 00000900 0100 00000900")
_BITMAPS = [
    bytes.fromhex("0100000000000000 00000000 3a300000 01000000 00000200 10000000 0100 0500 0900"),
    (2).to_bytes(8, "little") + bytes(4) + _RUN + (1).to_bytes(4, "little") + _RUN,
    bytes.fromhex("0100000000000000 00000000 3a300000 01000000 0000ffff 10000000") + b"\xff" * 8192,
]


def _bitmap(data: bytes) -> None:
    both(lambda: positions(data, most=100_000), lambda: decode_z85(data.decode("latin-1")))


def _hive(data: bytes) -> None:
    path = data.decode("utf-8", "surrogateescape")
    values = partition_values(path, ["lake"])
    partition_fields([values])


_LEAVES = leaves(FileMetaData(trees.decode(_tail(_file(compression="snappy")))[0]).schema)


def _literal(data: bytes) -> None:
    text = data.decode("utf-8", "surrogateescape")
    for leaf in _LEAVES:
        both(lambda leaf=leaf: physical_values(leaf, text))  # type: ignore[misc]


def _module(data: bytes) -> None:
    sealed = _cipher()
    both(
        lambda: cipher.decrypt_gcm(data, KEY, _AAD),
        lambda: cipher.decrypt_ctr(data, KEY),
        lambda: sealed.decrypt(ModuleType.DATA_PAGE, data, page=0),
        lambda: cipher.verify_footer(data, data[-28:], KEY, _AAD),
    )


def _record(data: bytes) -> None:
    both(lambda: find_fields(data), lambda: scan_footer(data))


TARGETS: dict[str, Target] = {
    "thrift": Target(seeds=_footers, run=_record, microseconds=140),
    "footer": Target(seeds=_footers, run=_footer_tree, microseconds=290),
    "footer_tree": Target(seeds=_footers, run=_footer_tree, microseconds=1600, is_tree=True),
    "footer_scan": Target(seeds=_footers, run=_footer_scan, microseconds=280),
    "footer_scan_tree": Target(seeds=_footers, run=_footer_scan, microseconds=1800, is_tree=True),
    "modules": Target(
        seeds=lambda: [cipher.encrypt_gcm(b"text", KEY, _AAD)], run=_module, microseconds=60
    ),
    "bloom_header": Target(seeds=_filters, run=_filter, microseconds=85),
    "key_material": Target(seeds=_materials, run=_material, microseconds=75, is_text=True),
    "keyring": Target(
        seeds=lambda: [_KEYRING_TEXT], run=_as_file(Keyring.load), microseconds=80, is_text=True
    ),
    "policy": Target(
        seeds=lambda: [_POLICY_TEXT], run=_as_file(draft_policy), microseconds=140, is_text=True
    ),
    "condition": Target(seeds=lambda: _CONDITIONS, run=_condition, microseconds=105, is_text=True),
    "literal": Target(
        seeds=lambda: [b"12.50", b"2024-03-01T10:00:00Z", b"hex:00ff", b"-1e5"],
        run=_literal,
        microseconds=24,
        is_text=True,
    ),
    "hudi": Target(seeds=_hudi_seeds, run=_hudi, microseconds=12),
    "paimon_index": Target(seeds=_paimon_seeds, run=_paimon, microseconds=31),
    "delta_log": Target(
        seeds=lambda: [_lines(_COMMIT)], run=_delta_log, microseconds=180, is_text=True
    ),
    "streaming_sink": Target(seeds=lambda: [_SINK], run=_sink, microseconds=130, is_text=True),
    "deletion_vector": Target(seeds=lambda: _BITMAPS, run=_bitmap, microseconds=57),
    "hive_path": Target(
        seeds=lambda: [
            b"lake/day=2024-03-01/c=it/x.parquet",
            b"lake/a=%20/b=__HIVE_DEFAULT_PARTITION__/y",
        ],
        run=_hive,
        microseconds=15,
        is_text=True,
    ),
    "pages": Target(seeds=_numbered_files, run=_pages, microseconds=510),
    "kernels": Target(seeds=kernels.seeds, run=kernels.call, microseconds=27),
}
