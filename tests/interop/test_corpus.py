"""Every file of the public corpus opens with its keys, takes filters and reads back equal."""

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
from secure_bloom.parquet.column_values import read_values
from secure_bloom.parquet.structures.metadata import Type
from tests.project import CORPUS
from tests.surgery import filter_of, opened

pytestmark = pytest.mark.skipif(
    not CORPUS.exists(), reason="needs ../shared/parquet-testing beside the project"
)

#: As the corpus's README names them.
FOOTER, DOUBLE, FLOAT = b"0123456789012345", b"1234567890123450", b"1234567890123451"
MASTER_KEYS = {"kf": FOOTER, "kc1": DOUBLE, "kc2": FLOAT}
BY_PLACE = {"footer": FOOTER, "columns": {"double_field": DOUBLE, "float_field": FLOAT}}
KEYS: dict[str, Any] = {
    "data keys": sb.Keyring(data_keys=MASTER_KEYS),
    "data keys and prefix": sb.ExplicitKeys(data_keys=MASTER_KEYS, aad_prefix=b"tester"),
    "explicit": sb.ExplicitKeys(**BY_PLACE),
    "explicit and prefix": sb.ExplicitKeys(**BY_PLACE, aad_prefix=b"tester"),
    "key material beside the file": sb.Keyring(master_keys=MASTER_KEYS),
}
EXTERNAL = "external_key_material_java.parquet.encrypted"
FILES = sorted(p.name for p in CORPUS.glob("[!_]*.parquet*"))


def _kinds_of_keys(name: str) -> list[str]:
    """The ways in which the file's keys can be given."""
    if name == EXTERNAL:
        return ["key material beside the file"]
    if "disable_aad_storage" in name:
        return ["data keys and prefix", "explicit and prefix"]
    return ["data keys", "explicit"]


CASES = [(name, kind) for name in FILES for kind in _kinds_of_keys(name)]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A copy of the corpus's Parquet files and key material."""
    for name in [*FILES, *(p.name for p in CORPUS.glob("_KEY_MATERIAL_FOR_*"))]:
        shutil.copy(CORPUS / name, tmp_path / name)
    return tmp_path


@pytest.mark.parametrize(("name", "kind"), CASES)
def test_a_file_takes_filters_and_reads_back_equal(folder: Path, name: str, kind: str) -> None:
    path, keys = folder / name, KEYS[kind]
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

    None of AES_GCM_CTR_V1 with column keys, which no reader here opens but ours.
    """
    if "_ctr" in path.name:
        return None
    if path.name.startswith("encrypt_columns"):
        return _read_with_polars(path)
    properties = None
    if path.name.startswith("uniform"):
        properties = pe.create_decryption_properties(FOOTER)
    if path.name == EXTERNAL:
        properties = _external_properties(path)
    return pq.ParquetFile(path, decryption_properties=properties).read()


def _read_with_polars(path: Path) -> pa.Table:
    polars = pytest.importorskip("polars")
    properties = polars.ParquetDecryptionProperties(
        footer_key=FOOTER,
        column_keys=BY_PLACE["columns"],
        aad_prefix=b"tester" if "aad" in path.name else None,
    )
    return polars.scan_parquet(path, decryption=properties).collect().to_arrow()


def _external_properties(path: Path) -> object:
    return pe.CryptoFactory(_CorpusKms).file_decryption_properties(
        pe.KmsConnectionConfig(), pe.DecryptionConfiguration(), str(path)
    )


class _CorpusKms(pe.KmsClient):
    def __init__(self, _config: object) -> None:
        super().__init__()

    def unwrap_key(self, wrapped_key: str, master_key_identifier: str) -> bytes:
        keyring = KEYS["key material beside the file"]
        return keyring.unwrap_key(wrapped_key, master_key_identifier)


def test_the_serialized_filter_of_the_corpus_is_read() -> None:
    bloom_filter = decode_bloom_filter((CORPUS / "bloom_filter.xxhash.bin").read_bytes(), None)
    for word in (b"hello", b"parquet", b"bloom", b"filter"):
        assert bloom_filter.check(word)
    absent = [f"absent {i}".encode() for i in range(1000)]
    assert sum(map(bloom_filter.check, absent)) < 50
