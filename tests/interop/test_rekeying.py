"""Any type, encoding, codec and page version goes through every protection and comes back equal.

Equal is what `tests.rekeying.content` sees, every page and filter byte for byte, and what pyarrow
and DuckDB read.  parquet-java's part is `tests/spark/test_rekeyed_files.py`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pyarrow.parquet.encryption as pe
import pytest

import secure_bloom as sb
from secure_bloom.calling.options import FooterMode
from secure_bloom.encryption.policy_tables import Algorithm, ColumnRule, EncryptionOptions
from testing.columns import CASES, DICTIONARY, Column
from testing.tables import KEYRING, crypto_factory
from tests.interop.samples import MASTER_KEYS as CORPUS_KEYS
from tests.interop.test_corpus import FILES_AND_KEYS, KEYS, placed
from tests.rekeying.content import content

ROWS = 60
CODECS = ["none", "snappy", "gzip", "brotli", "zstd", "lz4"]
#: Each protection follows the one before it.
CHAIN: dict[str, dict[str, Any]] = {
    "encrypted": {},
    "signed, CTR": {
        "footer_mode": FooterMode.SIGNED,
        "encryption": EncryptionOptions(algorithm=Algorithm.AES_GCM_CTR_V1),
    },
    "uniform, 256 bits, wrapped once": {
        "uniform": True,
        "encryption": EncryptionOptions(data_key_bits=256, double_wrapping=False),
    },
    "signed, keys outside": {
        "footer_mode": FooterMode.SIGNED,
        "encryption": EncryptionOptions(internal_storage=False),
    },
}


def typed_table(cases: Iterable[tuple[Column, str]]) -> tuple[pa.Table, dict[str, str]]:
    """One column for each type and encoding, every seventh row null; the encodings by leaf."""
    columns, encodings = {}, {}
    for number, (column, encoding) in enumerate(cases):
        name = f"x{number}"
        values = column.values(0, ROWS)
        columns[name] = column.array([None if i % 7 == 3 else n for i, n in enumerate(values)])
        encodings[f"{name}{column.leaf.removeprefix('x')}"] = encoding
    return pa.table(columns), encodings


def options_of(column: Column) -> tuple[tuple[str, Any], ...]:
    return tuple(column.options.items())


OPTIONS = sorted({options_of(column) for column, _ in CASES}, key=str)


def versioned(choices: Sequence[Any], turn: int = 0) -> list[Any]:
    """Each choice in both versions of pages, of which `make test` takes one, in turns."""
    return [
        pytest.param(choice, version, marks=[pytest.mark.slow] * ((i + j + turn) % 2))
        for i, choice in enumerate(choices)
        for j, version in enumerate(("1.0", "2.0"))
    ]


def named(of: Any) -> str:
    """The name of a choice: of options, a codec or a version."""
    return of if isinstance(of, str) else ",".join(name for name, _ in of) or "types"


def policy(number: int, columns: Iterable[str], **settings: Any) -> sb.KeyPolicy:
    """Every second column under a key of its own, others in different stages."""
    keyed = list(columns)[number % 2 :: 2]
    rules = {name: ColumnRule(path=name, key="k_pii") for name in keyed}
    return sb.KeyPolicy(footer_key="k_footer", columns=rules, **settings)


def with_filters(path: Path, table: pa.Table) -> None:
    names = [
        field.name
        for field in table.schema
        if not pa.types.is_nested(field.type) and not pa.types.is_boolean(field.type)
    ]
    report = sb.add_bloom_filters(path, columns=names[:8])
    assert not report.failed


def by_pyarrow(path: Path) -> pa.Table:
    properties = crypto_factory().file_decryption_properties(
        pe.KmsConnectionConfig(), pe.DecryptionConfiguration(), str(path)
    )
    return pq.ParquetFile(path, decryption_properties=properties).read()


@pytest.mark.parametrize(("options", "version"), versioned(OPTIONS), ids=named)
def test_every_type_and_encoding_in_every_protection(
    tmp_path: Path, options: tuple[tuple[str, Any], ...], version: str
) -> None:
    cases = [case for case in CASES if options_of(case[0]) == options]
    table, encodings = typed_table(cases)
    path = tmp_path / "x.parquet"
    write(path, table, encodings, data_page_version=version, compression="zstd", **dict(options))
    with_filters(path, table)
    goes_through_all(path, table, version)


@pytest.mark.parametrize(("codec", "version"), versioned(CODECS), ids=named)
def test_every_codec_in_every_protection(tmp_path: Path, codec: str, version: str) -> None:
    texts = [None if n % 7 == 3 else f"some text {n}" for n in range(ROWS)]
    table = pa.table({"x0": texts, "x1": range(ROWS), "x2": [[n] * (n % 3) for n in range(ROWS)]})
    path = tmp_path / "x.parquet"
    write(path, table, {}, data_page_version=version, compression=codec, data_page_size=64)
    with_filters(path, table)
    goes_through_all(path, table, version)


def write(path: Path, table: pa.Table, encodings: dict[str, str], **options: Any) -> None:
    plain = {leaf: encoding for leaf, encoding in encodings.items() if encoding != DICTIONARY}
    dictionary = [leaf for leaf, encoding in encodings.items() if encoding == DICTIONARY]
    pq.write_table(
        table,
        path,
        row_group_size=ROWS // 2,
        use_dictionary=dictionary,
        column_encoding=plain or None,
        write_page_index=True,
        write_page_checksum=True,
        **options,
    )


def goes_through_all(path: Path, table: pa.Table, version: str) -> None:
    """Re-encrypted again and again, rotated, decrypted: always the same content and rows."""
    before, old = content(path), path.parent / "original.parquet"
    old.write_bytes(path.read_bytes())
    rows = pq.read_table(old)
    for number, (name, settings) in enumerate(CHAIN.items()):
        wanted = policy(number, table.column_names, **settings)
        report = sb.reencrypt(path, policy=wanted, keys=KEYRING)
        assert not report.failed, name
        assert content(path, KEYRING) == before, name
        rotated = sb.rotate_keys(path, policy=wanted, moves={"k_pii": "k_finance"}, keys=KEYRING)
        assert not rotated.failed, name
        assert content(path, KEYRING) == before, name
        # Levels of version 2 are in clear, as parquet-java writes them: not for pyarrow.
        if version == "1.0":
            assert by_pyarrow(path).equals(rows), name
    sb.decrypt(path, output=path.parent / "out", keys=KEYRING)
    clear = path.parent / "out" / path.name
    assert content(clear) == before
    assert by_pyarrow_plain(clear) == by_pyarrow_plain(old)
    assert by_duckdb(clear) == by_duckdb(old)


def by_pyarrow_plain(path: Path) -> tuple[pa.Table, list[Any]]:
    file = pq.ParquetFile(path, page_checksum_verification=True)
    chunks = [
        file.metadata.row_group(group).column(column)
        for group in range(file.metadata.num_row_groups)
        for column in range(file.metadata.num_columns)
    ]
    return file.read(), [(it.statistics, it.encodings, it.num_values) for it in chunks]


def by_duckdb(path: Path) -> str:
    """Its rows, or why it reads none: it lacks BYTE_STREAM_SPLIT of bytes."""
    duckdb = pytest.importorskip("duckdb")
    try:
        return repr(duckdb.sql(f"select * from '{path}'").fetchall())
    except duckdb.Error as error:
        return str(error)


@pytest.mark.parametrize(("source", "name", "kind"), FILES_AND_KEYS)
def test_a_file_of_any_writer_comes_under_a_policy_and_into_the_clear(
    source: Path | None, name: str, kind: str, tmp_path: Path
) -> None:
    path, keys = placed(source, name, tmp_path), KEYS[kind]
    before = content(path, keys)
    wanted = sb.KeyPolicy(
        footer_key="kf",
        footer_mode=FooterMode.SIGNED,
        columns={},
        uniform=True,
    )
    decrypted = sb.decrypt(path, output=tmp_path / "clear", keys=keys)
    assert not decrypted.failed
    assert content(tmp_path / "clear" / name) == before
    again = sb.reencrypt(
        tmp_path / "clear" / name,
        policy=wanted,
        keys=sb.Keyring(master_keys=CORPUS_KEYS),
        output=tmp_path / "sealed",
    )
    assert not again.failed
    assert content(tmp_path / "sealed" / name, sb.Keyring(master_keys=CORPUS_KEYS)) == before
