"""Options of a build, and what its report says."""

from __future__ import annotations

import pytest

from secure_bloom.errors import PolicyError
from secure_bloom.paimon.build_report import BuildReport, ColumnReport, IndexOptions, IndexReport


@pytest.mark.parametrize(
    "options",
    [
        {"items": 0},
        {"items": -1},
        {"items": True},
        {"items": 1.5},
        {"fpp": 0},
        {"fpp": 1},
        {"fpp": "x"},
    ],
)
def test_options_that_make_no_filter_are_refused(options: dict[str, object]) -> None:
    with pytest.raises(PolicyError):
        IndexOptions(**options)


def _column(name: str, shows: str | None) -> ColumnReport:
    return ColumnReport(
        column=name,
        items=1,
        values=1,
        bytes=1,
        hash_functions=1,
        fpp_requested=0.1,
        fpp=0.1,
        encrypted=shows is not None,
        shows=shows,
    )


def test_what_an_index_shows_is_noted_once_for_each_column() -> None:
    columns = (_column("b", "whether"), _column("a", "whether"), _column("c", None))
    files = tuple(IndexReport(path=path, status="built", columns=columns) for path in ("x", "y"))
    assert BuildReport(files=files).notes == ("column a: whether", "column b: whether")


def test_failed_files_are_told() -> None:
    files = (
        IndexReport(path="x", status="built"),
        IndexReport(path="y", status="failed", error="damaged"),
    )
    assert [file.path for file in BuildReport(files=files).failed] == ["y"]
