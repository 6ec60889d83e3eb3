"""What a terminal shows of files: a table each, or of many files one; keys, notes, indexes."""

from __future__ import annotations

from dataclasses import replace

import pytest

from secure_bloom.calling.options import FooterMode
from secure_bloom.cli.inspect_verb import print_inspect_report
from secure_bloom.hudi.record_keys.footer_entry import RecordKeyDescription
from secure_bloom.inspecting.files import (
    BloomInspection,
    ColumnInspection,
    FileInspection,
    InspectReport,
    RowGroupInspection,
)
from secure_bloom.paimon.index_description import IndexInspection, PaimonInspection

FILTER = BloomInspection(offset=4, length=96, bytes=64, fpp=0.01, fill=0.5)
EMAIL = ColumnInspection(
    column="email", type="BYTE_ARRAY STRING", encrypted="column_key", key="k_pii", bloom=FILTER
)
CITY = ColumnInspection(
    column="city", type="BYTE_ARRAY STRING", encrypted="no", key=None, bloom=None
)
GROUPS = tuple(RowGroupInspection(row_group=i, rows=30, columns=(EMAIL, CITY)) for i in (0, 1))
FILE = FileInspection(
    path="a.parquet",
    footer=FooterMode.ENCRYPTED,
    algorithm="AES_GCM_V1",
    key="k_footer",
    rows=60,
    row_groups=GROUPS,
)


def shown(
    capsys: pytest.CaptureFixture[str], *files: FileInspection, verbose: bool = False
) -> list[str]:
    print_inspect_report(InspectReport(files=files), verbose=verbose)
    return capsys.readouterr().out.splitlines()


def test_a_file_is_its_footer_and_a_row_for_each_column(
    capsys: pytest.CaptureFixture[str],
) -> None:
    first, *rows = shown(capsys, FILE)
    assert first == (
        "a.parquet: encrypted footer, AES_GCM_V1, footer key k_footer; 60 rows in 2 row groups"
    )
    (email,) = [row.split() for row in rows if "email" in row]
    assert email[:4] == ["email", "string", "k_pii", "2"]
    (city,) = [row for row in rows if "city" in row]
    assert "in clear" in city
    assert "0 of 2" in city


def test_row_groups_have_tables_of_their_own_with_verbose(
    capsys: pytest.CaptureFixture[str],
) -> None:
    text = "\n".join(shown(capsys, FILE, verbose=True))
    assert "row group 0, 30 rows" in text
    assert text.count("1 of 1") == 2


def test_many_files_are_one_table(capsys: pytest.CaptureFixture[str]) -> None:
    files = [replace(FILE, path=f"{i}.parquet") for i in range(11)]
    broken = FileInspection(path="broken.parquet", error="no footer")
    lines = shown(capsys, *files, broken)
    assert sum(".parquet" in line for line in lines) == 11
    assert "11 files, 660 rows, 22 row groups" in lines
    assert sum("k_pii" in line for line in lines) == 11
    assert sum("k_pii" in line for line in shown(capsys, *files, verbose=True)) == 22


def test_what_cannot_be_looked_at_is_a_question_mark_and_a_note(
    capsys: pytest.CaptureFixture[str],
) -> None:
    locked = replace(EMAIL, bloom=None, note="no key")
    group = RowGroupInspection(row_group=0, rows=60, columns=(locked,))
    lines = shown(capsys, replace(FILE, row_groups=(group,), note="not verified"))
    assert lines[1:3] == ["  note: not verified", "  note: column email: no key"]
    assert any("email" in line and "?" in line for line in lines[3:])


@pytest.mark.parametrize(("length", "size"), [(96, "192 encrypted"), (None, "?")])
def test_the_size_of_a_filter_that_cannot_be_read_is_what_is_stored(
    capsys: pytest.CaptureFixture[str], length: int | None, size: str
) -> None:
    locked = replace(EMAIL, bloom=BloomInspection(offset=4, length=length), note="no key")
    groups = tuple(replace(group, columns=(locked,)) for group in GROUPS)
    (row,) = [it for it in shown(capsys, replace(FILE, row_groups=groups)) if " k_pii " in it]
    assert row.split("2 of 2")[1].strip() == size


def test_files_that_cannot_be_opened_count_no_rows(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    locked = replace(FILE, path="x.parquet", rows=None, row_groups=(), note="no key")
    lines = shown(capsys, *(replace(FILE, path=f"{i}.parquet") for i in range(11)), locked)
    (row,) = [line for line in lines if "x.parquet" in line and "note" not in line]
    assert row.split()[-4:] == ["?"] * 4
    assert "12 files; 11 can be read, 660 rows, 22 row groups" in lines


def test_a_filter_that_misses_values_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    wrong = replace(EMAIL, bloom=replace(FILTER, missed=3))
    group = RowGroupInspection(row_group=0, rows=60, columns=(wrong,))
    text = "\n".join(shown(capsys, replace(FILE, row_groups=(group,))))
    assert "wrong filter: a.parquet, row group 0, column email: misses 3 values" in text


@pytest.mark.parametrize(
    ("keys", "line"),
    [
        (RecordKeyDescription(range=True), "no filter; key range"),
        (RecordKeyDescription(note="cut short"), "filter that cannot be read: cut short; no key"),
        (
            RecordKeyDescription(type="DYNAMIC_V0", bytes=2048, rows=2, fpp=0.01),
            "DYNAMIC_V0 filter of 2.0 KiB in 2 rows, fpp 1 %; no key range",
        ),
    ],
)
def test_hudi_s_keys_are_one_line(
    capsys: pytest.CaptureFixture[str], keys: RecordKeyDescription, line: str
) -> None:
    assert f"  Hudi record keys: {line}" in "\n".join(shown(capsys, replace(FILE, hudi=keys)))


@pytest.mark.parametrize(
    ("index", "line"),
    [
        (PaimonInspection(path="i", error="damaged"), "cannot be read: damaged"),
        (PaimonInspection(path="i", bytes=10), "10 bytes in clear beside the file: no columns"),
        (
            PaimonInspection(
                path="i",
                bytes=10,
                indexes=(IndexInspection(column="id", type="bitmap", bytes=9),),
            ),
            "10 bytes in clear beside the file: id (bitmap)",
        ),
    ],
)
def test_paimon_s_index_is_one_line(
    capsys: pytest.CaptureFixture[str], index: PaimonInspection, line: str
) -> None:
    assert f"  Paimon index: {line}" in shown(capsys, replace(FILE, paimon=index))
