"""An audit reads no more of a file than a bound, whatever the file says."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from secure_bloom.auditing import file_audit
from secure_bloom.auditing.audit_request import AuditRequest
from secure_bloom.auditing.checks import column_filters
from secure_bloom.auditing.metered_file import MeteredFile
from secure_bloom.encryption.keys import KeyResolver
from secure_bloom.errors import FormatError
from secure_bloom.storage import open_input
from tests.auditing.examples import (
    POLICY,
    Example,
    filtered,
    some_filter,
)
from tests.surgery import Opened, edit_footer
from tests.tables import KEYRING, write


def test_a_thousand_chunks_that_share_one_filter_are_not_read_a_thousand_times(
    tmp_path: Path,
) -> None:
    table = pa.table({f"c{i}": ["a"] for i in range(50)})
    path = write(tmp_path / "x.parquet", table, store_schema=False)
    big = some_filter(b"a", blocks=1 << 15)

    def share(it: Opened) -> bytes:
        for i in range(50):
            it.chunk(0, f"c{i}").meta_data.bloom_filter_offset = it.footer.tail.offset
            it.chunk(0, f"c{i}").meta_data.bloom_filter_length = len(big)
        return big

    edit_footer(path, share)
    request = AuditRequest(policy=replace(POLICY, columns={}))
    audit = file_audit.audit_file(str(path), request, KeyResolver(KEYRING))
    overlaps = [f for f in audit.findings if "overlap" in f.what]
    assert 40 < len(overlaps) < 50


def test_reads_are_bounded_by_the_size_of_the_file(tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    path.write_bytes(bytes(1024 * 1024))
    with open_input(str(path)) as file:
        metered = MeteredFile(file)
        for _ in range(5):
            metered.read_at(0, file.size)
        with pytest.raises(FormatError, match="overlap"):
            metered.read_at(0, 1)


def test_filters_are_read_no_further_than_a_bound(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = filtered(tmp_path, "city", "score")
    assert Example(path=path).audit().findings == ()
    monkeypatch.setattr(column_filters, "MOST_FILTERS", 32)
    report = Example(path=path).audit()
    assert {finding.id for finding in report.findings} == {"unchecked-file"}
