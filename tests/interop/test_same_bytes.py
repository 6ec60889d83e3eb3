"""The bytes that ``add`` writes are those of numpy alone, and those of commit 30d71ee.

``tests/vectors/filters/30d71ee.json`` has a digest of the filters of each case, and of the whole
file where it is plain.  ``python -m tests.interop.test_same_bytes`` prints it for the package
that is imported: it was made by that commit, where numba computed the filters.  Only the digests of
decimals of one width and of binary values are later: they have got a second form.
"""

from __future__ import annotations

import hashlib
import json
import tempfile
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from secure_bloom.encryption import cipher
from secure_bloom.kernels import extension
from testing.columns import CASE_IDS, CASES, Column
from testing.surgery import filter_of
from testing.tables import Mode
from testing.typed_files import add_filter, typed_file

VECTORS = Path(__file__).parents[1] / "vectors" / "filters" / "30d71ee.json"
CODECS = ["none", "snappy", "gzip", "zstd", "lz4", "brotli"]
MODES = list(Mode)
ROW_GROUPS = 3


def _added(folder: Path, number: int) -> tuple[Path, Column]:
    """Write a case in another codec, page version and mode than its neighbours, add filters."""
    column, encoding = CASES[number]
    options = {"compression": CODECS[number % 6], "data_page_version": f"{1 + number // 6 % 2}.0"}
    file = typed_file(folder, column, encoding, MODES[number % 4], row_groups=ROW_GROUPS, **options)
    add_filter(file, fpp=0.02)
    return file.path, column


def _digest(folder: Path, number: int) -> str:
    """Return a digest of the filters of a case, and one of the file if nothing in it is random."""
    path, column = _added(folder, number)
    filters = [filter_of(path, group, column.leaf).to_bytes() for group in range(ROW_GROUPS)]
    content = [b"".join(filters)]
    if MODES[number % 4] is Mode.PLAIN:
        content.append(path.read_bytes())
    return " ".join(hashlib.sha256(part).hexdigest()[:16] for part in content)


@pytest.fixture(scope="module")
def digests() -> dict[str, str]:
    found: dict[str, str] = json.loads(VECTORS.read_text())
    return found


@pytest.mark.parametrize("number", range(len(CASES)), ids=CASE_IDS)
def test_filters_and_plain_files_are_those_of_before(
    tmp_path: Path, number: int, digests: dict[str, str]
) -> None:
    wanted = digests[CASE_IDS[number]].split()
    found = _digest(tmp_path, number).split()
    # Another pyarrow writes the rest of a file otherwise.
    parts = 2 if digests["pyarrow"] == pa.__version__ else 1
    assert found[:parts] == wanted[:parts]


@pytest.mark.parametrize("number", range(0, len(CASES), 5), ids=CASE_IDS[::5])
def test_numpy_writes_the_same_bytes(
    tmp_path: Path, number: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    column, encoding = CASES[number]
    options = {"compression": CODECS[number % 6]}
    mode = MODES[number % 4]
    file = typed_file(tmp_path, column, encoding, mode, row_groups=ROW_GROUPS, **options)
    before, written = file.path.read_bytes(), []
    for native in (extension.native, None):
        file.path.write_bytes(before)
        # The same nonces both times: else no encrypted byte would be the same.
        nonces = (number.to_bytes(12, "big") for number in count())
        monkeypatch.setattr(cipher, "_fresh_nonce", lambda nonces=nonces: next(nonces))
        monkeypatch.setattr(extension, "native", native)
        add_filter(file)
        written.append(file.path.read_bytes())
    assert written[0] == written[1] != before


def _every_digest() -> Iterator[tuple[str, Any]]:
    yield "pyarrow", pa.__version__
    for number, name in enumerate(CASE_IDS):
        with tempfile.TemporaryDirectory() as folder:
            yield name, _digest(Path(folder), number)


if __name__ == "__main__":
    print(json.dumps(dict(_every_digest()), indent=1))
