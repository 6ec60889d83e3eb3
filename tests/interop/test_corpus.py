"""Every file of the public corpus opens with its keys, takes filters and reads back equal.

So does every sample of our own that has the keys and the mode of one of its files.
"""

from __future__ import annotations

import shutil
import struct
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pyarrow.parquet.encryption as pe
import pytest

import secure_bloom as sb
from secure_bloom.bloom.stored import decode_bloom_filter
from secure_bloom.parquet.structures.metadata import Type
from testing.project import CORPUS, NO_CORPUS
from testing.surgery import filter_of, opened
from tests.interop.samples import (
    COLUMN_KEYS,
    FOOTER,
    MASTER_KEYS,
    PREFIX,
    SAMPLES,
    CorpusKms,
    make_sample,
)
from tests.parquet.arrow_values import read_values

NEEDS_CORPUS = pytest.mark.skipif(not CORPUS.exists(), reason=NO_CORPUS)
BY_PLACE: dict[str, Any] = {"footer": FOOTER, "columns": COLUMN_KEYS}
KEYS: dict[str, Any] = {
    "data keys": sb.Keyring(data_keys=MASTER_KEYS),
    "data keys and prefix": sb.ExplicitKeys(data_keys=MASTER_KEYS, aad_prefix=PREFIX),
    "explicit": sb.ExplicitKeys(**BY_PLACE),
    "explicit and prefix": sb.ExplicitKeys(**BY_PLACE, aad_prefix=PREFIX),
    "master keys": sb.Keyring(master_keys=MASTER_KEYS),
}
CORPUS_FILES = sorted(p.name for p in CORPUS.glob("[!_]*.parquet*"))


def kinds_of_keys(name: str, *, is_ours: bool) -> list[str]:
    """The ways in which the file's keys can be given."""
    if "key_material" in name:
        return ["master keys"]
    suffix = " and prefix" if "disable_aad_storage" in name else ""
    # Of our samples no other has key metadata, by which data keys are found.
    return [f"explicit{suffix}"] if is_ours else [f"data keys{suffix}", f"explicit{suffix}"]


FILES_AND_KEYS = [
    pytest.param(None, name, kind, id=f"sample-{name}-{kind}")
    for name in SAMPLES
    for kind in kinds_of_keys(name, is_ours=True)
] + [
    pytest.param(CORPUS, name, kind, id=f"corpus-{name}-{kind}", marks=NEEDS_CORPUS)
    for name in CORPUS_FILES or ["its files"]
    for kind in kinds_of_keys(name, is_ours=False)
]


def placed(source: Path | None, name: str, folder: Path) -> Path:
    """The file in a folder of its own: a sample, or a copy with what stands beside it."""
    if source is None:
        return make_sample(name, folder)
    for path in source.glob(f"*{name}*"):
        shutil.copy(path, folder / path.name)
    return folder / name


@pytest.mark.parametrize(("source", "name", "kind"), FILES_AND_KEYS)
def test_a_file_takes_filters_and_reads_back_equal(
    source: Path | None, name: str, kind: str, tmp_path: Path
) -> None:
    path, keys = placed(source, name, tmp_path), KEYS[kind]
    before, rows = _values(path, keys), _foreign_rows(path)
    columns = {column for _, column in before}
    report = sb.add_bloom_filters(path, columns=columns, keys=keys, replace_filters=True)
    assert not report.failed
    assert {done.action for done in report.files[0].filters} <= {"added", "replaced"}
    assert _values(path, keys) == before
    for (row_group, column), values in before.items():
        assert all(map(filter_of(path, row_group, column, keys).check, values))
    assert _foreign_rows(path) == rows


def _values(path: Path, keys: sb.Keyring | sb.ExplicitKeys) -> dict[tuple[int, str], list[bytes]]:
    """PLAIN-encoded values by row group and column that can have a filter, as we decode them."""
    with opened(path, keys) as it:
        return {
            (row_group, leaf.name): [
                _plain(leaf.type, value)
                for array in read_values(it.file, it.chunk(row_group, leaf.name)).arrays
                for value in array.to_pylist()
            ]
            for row_group in range(len(it.footer.row_groups))
            for leaf in it.footer.leaves
            if leaf.type is not Type.BOOLEAN
        }


_FORMS = {Type.INT32: "<i", Type.INT64: "<q", Type.FLOAT: "<f", Type.DOUBLE: "<d"}


def _plain(physical: Type, value: float | bytes) -> bytes:
    return value if isinstance(value, bytes) else struct.pack(_FORMS[physical], value)


def _foreign_rows(path: Path) -> pa.Table | None:
    """The rows as pyarrow has them, or Polars where pyarrow cannot be given the columns' keys.

    None of AES_GCM_CTR_V1 with column keys that no KMS has wrapped, which no reader here opens but
    ours.
    """
    if "key_material" in path.name:
        properties = pe.CryptoFactory(CorpusKms).file_decryption_properties(
            pe.KmsConnectionConfig(), pe.DecryptionConfiguration(), str(path)
        )
    elif path.name.startswith("encrypt_columns"):
        return None if "_ctr" in path.name else _read_with_polars(path)
    elif path.name.startswith("uniform"):
        properties = pe.create_decryption_properties(FOOTER)
    else:
        properties = None
    return pq.ParquetFile(path, decryption_properties=properties).read()


def _read_with_polars(path: Path) -> pa.Table:
    polars = pytest.importorskip("polars")
    properties = polars.ParquetDecryptionProperties(
        footer_key=FOOTER,
        column_keys=COLUMN_KEYS,
        aad_prefix=PREFIX if "aad" in path.name else None,
    )
    return polars.scan_parquet(path, decryption=properties).collect().to_arrow()


@NEEDS_CORPUS
def test_the_serialized_filter_of_the_corpus_is_read() -> None:
    bloom_filter = decode_bloom_filter((CORPUS / "bloom_filter.xxhash.bin").read_bytes(), None)
    for word in (b"hello", b"parquet", b"bloom", b"filter"):
        assert bloom_filter.check(word)
    absent = [f"absent {i}".encode() for i in range(1000)]
    assert sum(map(bloom_filter.check, absent)) < 50
