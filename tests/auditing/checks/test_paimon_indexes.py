"""A filter of a Paimon index in clear holds values of its column alone."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import secure_bloom as sb
from secure_bloom.auditing import file_audit
from secure_bloom.auditing.checks import paimon_indexes
from secure_bloom.paimon import column_filter
from secure_bloom.paimon.container import FileIndex
from secure_bloom.parquet.footer.locate import read_tail
from secure_bloom.parquet.footer.opened import read_unverified
from secure_bloom.storage import open_input
from testing.tables import KEYRING, Mode, customers, write
from tests.auditing.examples import POLICY

ROWS = 200


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = write(tmp_path / "x.parquet", customers(ROWS), Mode.ENCRYPTED)
    built = sb.paimon.build_index(path, ["city", "id", "score"], keys=KEYRING)
    assert built.status == "built"
    return path


def _found(path: Path, **options: bool) -> set[tuple[str, str | None]]:
    report = sb.audit(path, policy=POLICY, keys=KEYRING, **options)
    return {(it.id, it.column) for it in report.findings if it.id.startswith("filter-crowded")}


def _with_emails(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Build the index of the city with the e-mails in it, as an attacker would."""
    honest = column_filter.column_hashes_of

    def crowded(*given: object) -> object:
        yield from honest(*given)  # type: ignore[arg-type]
        foreign = path.parent / "y.parquet"
        pq.write_table(pa.table({"city": customers(ROWS)["email"]}), foreign)
        with open_input(str(foreign)) as other:
            footer = read_unverified(read_tail(other))
            wanted = {"city": column_filter.IndexOptions()}
            (source,) = column_filter.column_sources(footer, wanted)
            yield from honest(other, source)
        foreign.unlink()

    with monkeypatch.context() as patched:
        patched.setattr(column_filter, "column_hashes_of", crowded)
        assert sb.paimon.build_index(path, ["city"], keys=KEYRING).error is None


@pytest.mark.parametrize("check_values", [False, True])
def test_foreign_values_in_an_index_are_found(
    file: Path, monkeypatch: pytest.MonkeyPatch, check_values: bool
) -> None:
    assert _found(file, check_values=check_values) == set()
    _with_emails(file, monkeypatch)
    # A column that the file lacks, before the others, hides none of them.
    place = file.with_name("x.parquet.index")
    index = FileIndex.from_bytes(place.read_bytes())
    place.write_bytes(
        FileIndex()
        .with_indexes([("absent", index.columns[0].indexes[0])])
        .with_indexes([(it.name, it.indexes[0]) for it in index.columns])
        .to_bytes()
    )
    assert _found(file, check_values=check_values) == {("filter-crowded", "city")}


def test_an_index_that_hashes_otherwise_says_nothing(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another version of Paimon may hash a type otherwise: its bits are not foreign values."""
    honest = column_filter.column_hashes_of
    monkeypatch.setattr(
        column_filter, "column_hashes_of", lambda *given: (it + 1 for it in honest(*given))
    )
    assert paimon_indexes.check_index_bits in file_audit._FOOTER_CHECKS
    assert _found(file) == set()


@pytest.mark.parametrize("foreign", [0, 1])
def test_the_index_in_a_manifest_is_compared_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, foreign: int
) -> None:
    pytest.importorskip("pypaimon_rust")
    from testing.paimon_tables import Warehouse

    lake = Warehouse(path=str(tmp_path / "lake"))
    folder = lake.create("id bigint, city string", file_index__in_manifest_threshold="1 kb")
    lake.insert([(1, "a"), (2, "b")])
    honest = column_filter.column_hashes_of
    with monkeypatch.context() as patched:
        patched.setattr(
            column_filter,
            "column_hashes_of",
            lambda *given: (it + n for it in honest(*given) for n in {0, foreign}),
        )
        assert not sb.paimon.build_index(folder, ["id"]).failed
    findings = sb.audit(folder, policy=POLICY, without_keys=True).findings
    assert len([it for it in findings if it.id == "filter-crowded"]) == foreign
