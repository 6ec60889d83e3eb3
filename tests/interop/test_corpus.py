"""Every file of the public corpus opens with its keys, takes filters and reads back equal."""

from __future__ import annotations

import base64
import shutil
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pyarrow.parquet.encryption as pe
import pytest

import secure_bloom as sb
from secure_bloom.bloom import decode_bloom_filter
from secure_bloom.metadata import Type
from secure_bloom.values import read_values
from tests.surgery import CORPUS, opened

pytestmark = pytest.mark.skipif(
    not CORPUS.exists(), reason="needs ../shared/parquet-testing beside the project"
)

#: As the corpus's README names them.
FOOTER, DOUBLE, FLOAT = b"0123456789012345", b"1234567890123450", b"1234567890123451"
MASTER_KEYS = {"kf": FOOTER, "kc1": DOUBLE, "kc2": FLOAT}
KEYS = {
    "data keys": sb.Keyring(data_keys=MASTER_KEYS),
    "data keys, prefix supplied": sb.ExplicitKeys(data_keys=MASTER_KEYS, aad_prefix=b"tester"),
    "explicit": sb.ExplicitKeys(
        footer=FOOTER,
        columns={"double_field": DOUBLE, "float_field": FLOAT},
        aad_prefix=b"tester",
    ),
    "key material beside the file": sb.Keyring(master_keys=MASTER_KEYS),
}
EXTERNAL = "external_key_material_java.parquet.encrypted"
FILES = sorted(p.name for p in CORPUS.glob("*.parquet*")) if CORPUS.exists() else []


def _kinds_of_keys(name: str) -> list[str]:
    """The ways in which the file's keys can be given."""
    if name == EXTERNAL:
        return ["key material beside the file"]
    if "disable_aad_storage" in name:
        return ["data keys, prefix supplied", "explicit"]
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
    before = _values(path, keys)
    foreign = _read_with_pyarrow(path)
    report = sb.add_bloom_filters(path, columns=list(before), keys=keys, replace_filters=True)
    assert not report.failed
    assert {done.action for done in report.files[0].filters} <= {"added", "replaced"}
    assert _values(path, keys) == before
    assert _all_found(path, keys, before)
    if foreign is not None:
        again = _read_with_pyarrow(path)
        assert again is not None
        assert again.equals(foreign)


def _values(path: Path, keys: sb.Keyring | sb.ExplicitKeys) -> dict[str, list]:
    """The physical values of every column that can have a filter, as we decode them."""
    with opened(path, keys) as it:
        return {
            leaf.name: [
                array.to_pylist()
                for row_group in range(len(it.footer.row_groups))
                for array in read_values(it.file, it.chunk(row_group, leaf.name)).arrays
            ]
            for leaf in it.footer.leaves
            if leaf.type is not Type.BOOLEAN
        }


def _all_found(path: Path, keys: sb.Keyring | sb.ExplicitKeys, values: dict[str, list]) -> bool:
    for name in ("double_field", "float_field", "int32_field", "int64_field", "String"):
        cells = [cell for array in values.get(name, []) for cell in array]
        if isinstance(cells[:1], list) and cells:
            groups = sb.probe(path, name, cells, keys=keys).files[0].row_groups
            if not all(any(g.verdicts[c] == "maybe" for g in groups) for c in cells):
                return False
    return True


def _read_with_pyarrow(path: Path) -> pa.Table | None:
    """The rows, or None where pyarrow has no way to be given the file's keys.

    Its Python keys are one for the whole file, or those of a KMS with key material in the file.
    """
    if not path.name.endswith(".encrypted"):
        return pq.ParquetFile(path).read()
    if path.name.startswith("uniform"):
        properties = pe.create_decryption_properties(FOOTER)
    elif path.name == EXTERNAL:
        properties = _external_properties(path)
    else:
        return None
    return pq.ParquetFile(path, decryption_properties=properties).read()


def _external_properties(path: Path) -> object:
    class Kms(pe.KmsClient):
        def __init__(self, _config: object) -> None:
            super().__init__()

        def unwrap_key(self, wrapped_key: str | bytes, master_key_identifier: str) -> bytes:
            text = wrapped_key.decode() if isinstance(wrapped_key, bytes) else wrapped_key
            assert base64.b64decode(text)
            return KEYS["key material beside the file"].unwrap_key(text, master_key_identifier)

    return pe.CryptoFactory(Kms).file_decryption_properties(
        pe.KmsConnectionConfig(), pe.DecryptionConfiguration(), str(path)
    )


def test_the_serialized_filter_of_the_corpus_is_read() -> None:
    bloom_filter = decode_bloom_filter((CORPUS / "bloom_filter.xxhash.bin").read_bytes(), None)
    for word in (b"hello", b"parquet", b"bloom", b"filter"):
        assert bloom_filter.check(word)
    absent = [f"absent {i}".encode() for i in range(1000)]
    assert sum(map(bloom_filter.check, absent)) < 50
