"""One file, or several alike: what is found behind its footer, and what is read of it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

import secure_bloom as sb
from secure_bloom.auditing import file_audit
from secure_bloom.auditing.checks import column_filters
from secure_bloom.auditing.checks.subjects import AuditRequest, AuditRun
from secure_bloom.auditing.file_audit import MeteredFile
from secure_bloom.encryption.file_keys import KeyResolver
from secure_bloom.errors import FormatError
from secure_bloom.storage import open_input
from secure_bloom.storage.inputs import CountedFile
from testing.surgery import Opened, edit_footer, opened
from testing.tables import KEYRING, Mode, customers, write
from tests.auditing.datasets import batch, ids
from tests.auditing.examples import (
    POLICY,
    SIGNED,
    Example,
    bloom,
    filtered,
    put_filter,
    some_filter,
    sound,
    with_rules,
)


def test_one_file_in_clear_among_many_is_found(tmp_path: Path) -> None:
    batch(tmp_path, 4)
    write(tmp_path / "part-2.parquet", customers(30), Mode.PLAIN)
    report = Example(path=tmp_path).audit()
    assert {f.path for f in report.findings} == {str(tmp_path / "part-2.parquet")}
    assert report.files == 4
    # What breaks the policy need not be told to differ as well.
    assert "mixed-rules" not in ids(report)


def test_progress_is_reported_for_every_file(tmp_path: Path) -> None:
    batch(tmp_path, 3)
    seen: list[tuple[int, int]] = []
    Example(path=tmp_path).audit(progress=lambda done, total: seen.append((done, total)))
    assert seen == [(1, 3), (2, 3), (3, 3)]


def test_a_sample_is_spread_and_the_same_each_time(tmp_path: Path) -> None:
    batch(tmp_path, 6)
    first, second = (Example(path=tmp_path).audit(sample=3) for _ in range(2))
    assert first == second
    assert [Path(path).name for path in first.paths] == [f"part-{i}.parquet" for i in (0, 2, 4)]
    assert ids(first) == ["unchecked-sample"]
    assert ids(Example(path=tmp_path).audit(sample=6)) == []


def test_only_footers_filters_and_small_columns_in_clear_are_read(
    tmp_path: Path,
) -> None:
    path = sound(tmp_path, table=customers(20_000))
    assert not sb.add_bloom_filters(path, columns=["email", "city"], keys=KEYRING).failed
    with opened(path) as it:
        filters = sum(
            it.chunk(group, name).meta_data.bloom_filter_length or 0
            for group in range(len(it.footer.row_groups))
            for name in ("email", "city")
        )
        values = sum(
            it.chunk(group, "city").meta_data.total_compressed_size
            for group in range(len(it.footer.row_groups))
        )
        footer = max(it.file.size - it.footer.tail.offset, 64 * 1024)
        # Where the header of an encrypted filter is, one in clear is looked for.
        headers = 512 * len(it.footer.row_groups)
    policy = with_rules(city=bloom("city"), email=bloom("email", "k_pii"))
    with open_input(str(path)) as file:
        counted = CountedFile(file)
        request = AuditRequest(policy=policy)
        run = AuditRun(request=request, resolver=KeyResolver(KEYRING))
        subject = file_audit._subject(counted, run)
        audit = file_audit._audit(subject)
    assert audit.findings == ()
    assert counted.bytes_read <= footer + filters + values + headers + 8192
    assert counted.bytes_read < path.stat().st_size / 4


def test_signed_files_are_checked_without_any_key(tmp_path: Path) -> None:
    path = sound(tmp_path, Mode.SIGNED, column_keys={"k_finance": ["iban"]})
    put_filter(path, "iban", some_filter(b"DE0"))
    report = Example(path=path, policy=SIGNED).audit(keys=None, without_keys=True)
    assert set(ids(report)) == {
        "unchecked-signature",
        "column-in-clear",
        "filter-in-clear",
        "unchecked-column",
    }


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
    run = AuditRun(request=request, resolver=KeyResolver(KEYRING))
    audit = file_audit.audit_file(str(path), run)
    overlaps = [f for f in audit.findings if "overlap" in f.what]
    assert 35 < len(overlaps) < 50


def test_reads_are_bounded_by_the_size_of_the_file(tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    path.write_bytes(bytes(1024 * 1024))
    with open_input(str(path)) as file:
        metered = MeteredFile(file)
        for _ in range(12):
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


def test_an_error_of_the_value_search_in_an_unreadable_file_is_a_finding(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "x.parquet").write_bytes(b"PAR1 and no footer")

    def broken(*_: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(file_audit, "_traced_whole", broken)
    found = Example(path=tmp_path).audit().findings
    assert any("unforeseen ZeroDivisionError" in it.message for it in found)
