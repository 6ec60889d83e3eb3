"""A rewrite worked out in memory: where new filters go, and what the report says of each."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow as pa
import pytest

import secure_bloom as sb
from secure_bloom.adding import rewrite_plan
from secure_bloom.adding.in_place import append_mark
from secure_bloom.adding.report import FilterReport
from secure_bloom.adding.request import filter_request
from secure_bloom.adding.rewrite_plan import RewritePlan, plan_rewrite
from secure_bloom.calling.options import BloomFilterOptions
from secure_bloom.encryption.policy import KeyPolicy
from secure_bloom.encryption.policy_tables import ColumnRule
from secure_bloom.errors import FormatError, IntegrityError, PolicyError, UnsupportedFeatureError
from secure_bloom.parquet.pages import chunk_extent
from secure_bloom.storage import APPEND_ALIGNMENT, CountedFile
from testing.surgery import edit_column, filter_of, filter_place, flip, opened
from testing.tables import Mode, customers, read, write

pytestmark = pytest.mark.usefixtures("both_ways")

MODES = pytest.mark.parametrize("mode", Mode, ids=lambda mode: mode.name)


def _plan(path: Path, *columns: str, append: bool = False, **options: object) -> RewritePlan:
    request = filter_request(columns, None, **options)
    with opened(path) as it:
        return plan_rewrite(it.file, it.keys, request, append=append)


def _apply(path: Path, plan: RewritePlan) -> None:
    path.write_bytes(path.read_bytes()[: plan.keep] + b"".join(plan.tail))


def _footer_start(path: Path) -> int:
    with opened(path) as it:
        return it.footer.tail.offset


@MODES
def test_new_filters_stand_between_the_data_and_the_new_footer(tmp_path: Path, mode: Mode) -> None:
    path = write(tmp_path / "x.parquet", customers(60), mode, row_group_size=20)
    plan = _plan(path, "iban", "email", "score")
    assert plan.keep == _footer_start(path)
    assert len(plan.tail) == 3 * 3 + 1
    _apply(path, plan)
    order = [(r, c) for r in range(3) for c in ("email", "iban", "score")]
    assert [(f.row_group, f.column) for f in plan.filters] == order
    places = [filter_place(path, *chunk) for chunk in order]
    assert places[0].start == plan.keep
    assert [p.stop for p in places] == [*(p.start for p in places[1:]), _footer_start(path)]
    assert path.stat().st_size == plan.size


@MODES
def test_an_append_keeps_the_old_footer(tmp_path: Path, mode: Mode) -> None:
    path = write(tmp_path / "x.parquet", customers(20), mode)
    size, before = path.stat().st_size, read(path, encrypted=mode is not Mode.PLAIN)
    plan = _plan(path, "email", append=True)
    assert plan.keep == size
    _apply(path, plan)
    place = filter_place(path, 0, "email")
    assert place.start == size + len(append_mark(size))
    assert filter_of(path, 0, "email").check(b"user0@example.com")
    # Between the filter and the new footer nothing but zeros.
    assert not any(path.read_bytes()[place.stop : _footer_start(path)])
    assert path.read_bytes()[size:].startswith(append_mark(size))
    assert path.stat().st_size % APPEND_ALIGNMENT == 0
    assert read(path, encrypted=mode is not Mode.PLAIN).equals(before)


@MODES
@pytest.mark.parametrize("append", [True, False])
def test_a_plan_for_what_is_there_is_empty(tmp_path: Path, mode: Mode, append: bool) -> None:
    path = write(tmp_path / "x.parquet", customers(40), mode, row_group_size=20)
    _apply(path, _plan(path, "email", "id"))
    plan = _plan(path, "email", "id", append=append)
    assert plan.is_empty
    assert plan.size == plan.keep == path.stat().st_size
    assert list(plan.filters) == [
        FilterReport(
            row_group=row_group,
            column=column,
            bytes=filter_of(path, row_group, column).byte_count,
            values=None,
            fpp_requested=0.01,
            fpp=filter_of(path, row_group, column).fpp(),
            encrypted=mode is Mode.UNIFORM or (mode is not Mode.PLAIN and column == "email"),
            key={Mode.PLAIN: None, Mode.UNIFORM: "k_footer"}.get(
                mode, "k_pii" if column == "email" else None
            ),
            source=None,
            action="kept",
            reason="it was there already",
        )
        for row_group in (0, 1)
        for column in ("email", "id")
    ]


def test_a_report_tells_size_source_key_and_exact_fpp(tmp_path: Path) -> None:
    path = write(tmp_path / "x.parquet", customers(500), Mode.ENCRYPTED)
    plan = _plan(path, "email", "id")
    _apply(path, plan)
    for report, key in zip(plan.filters, ["k_pii", None], strict=True):
        stored = filter_of(path, 0, report.column)
        assert stored.fpp() <= 0.01
        assert report == FilterReport(
            row_group=0,
            column="email" if key else "id",
            bytes=stored.byte_count,
            values=500,
            fpp_requested=0.01,
            fpp=stored.fpp(),
            encrypted=key is not None,
            key=key,
            source="dictionary",
            action="added",
            reason=None,
        )


def test_a_bound_that_breaks_the_fpp_is_reported(tmp_path: Path) -> None:
    path = write(tmp_path / "x.parquet", customers(1000))
    options = BloomFilterOptions(fpp=0.01, max_bytes=128)
    with opened(path) as it:
        plan = plan_rewrite(it.file, it.keys, filter_request({"id": options}, None))
    (report,) = plan.filters
    assert report.bytes == 128
    assert report.fpp is not None
    assert report.fpp > 0.01
    assert report.reason == "max_bytes 128 is too small for the fpp"


def test_a_missing_column_is_reported_as_skipped(tmp_path: Path) -> None:
    path = write(tmp_path / "x.parquet", customers(10))
    options = {"id": BloomFilterOptions(), "nobody": BloomFilterOptions(fpp=0.25)}
    with opened(path) as it:
        plan = plan_rewrite(it.file, it.keys, filter_request(options, None))
    added, skipped = plan.filters
    assert (added.column, added.action, added.reason) == ("id", "added", None)
    assert skipped == FilterReport(
        row_group=None,
        column="nobody",
        fpp_requested=0.25,
        action="skipped",
        reason="the file has no such column",
    )


@MODES
def test_replaced_filters_at_the_end_give_their_room_back(tmp_path: Path, mode: Mode) -> None:
    path = write(tmp_path / "x.parquet", customers(60), mode, row_group_size=20)
    _apply(path, _plan(path, "email", "id"))
    size, start = path.stat().st_size, filter_place(path, 0, "email").start
    plan = _plan(path, "email", "id", replace_filters=True)
    assert {f.action for f in plan.filters} == {"replaced"}
    assert (plan.keep, plan.size) == (start, size)
    _apply(path, plan)
    assert read(path, encrypted=mode is not Mode.PLAIN).num_rows == 60


def test_room_between_filters_that_stay_is_not_reclaimed(tmp_path: Path) -> None:
    path = write(tmp_path / "x.parquet", customers(20), Mode.ENCRYPTED)
    _apply(path, _plan(path, "email", "id"))
    kept = filter_of(path, 0, "id")
    plan = _plan(path, "email", replace_filters=True)
    assert plan.keep == _footer_start(path)
    _apply(path, plan)
    assert filter_of(path, 0, "id") == kept


def test_data_is_never_given_up_for_a_filter_that_is_none(tmp_path: Path) -> None:
    """A footer that calls all data a filter must not cost the data (replace_filters)."""
    path = write(tmp_path / "x.parquet", customers(20))
    start = _footer_start(path)

    def claim_all(meta_data) -> None:
        meta_data.bloom_filter_offset, meta_data.bloom_filter_length = 4, start - 4

    edit_column(path, 0, "id", claim_all)
    plan = _plan(path, "id", replace_filters=True)
    assert plan.keep == start
    _apply(path, plan)
    assert read(path, encrypted=False).equals(customers(20))


def test_a_damaged_filter_is_an_error_and_can_be_replaced(tmp_path: Path) -> None:
    path = write(tmp_path / "x.parquet", customers(40), Mode.ENCRYPTED, row_group_size=20)
    _apply(path, _plan(path, "email"))
    flip(path, filter_place(path, 1, "email").stop - 1)
    with pytest.raises(IntegrityError) as caught:
        _plan(path, "email")
    assert (caught.value.row_group, caught.value.column) == (1, "email")
    assert caught.value.hint == "a damaged filter can be built anew: --replace-filters"
    _apply(path, _plan(path, "email", replace_filters=True))
    assert _plan(path, "email").is_empty


@MODES
def test_a_missing_length_is_added_to_a_filter_that_stays(tmp_path: Path, mode: Mode) -> None:
    path = write(tmp_path / "x.parquet", customers(20), mode)
    _apply(path, _plan(path, "email"))
    place, wanted = filter_place(path, 0, "email"), filter_of(path, 0, "email")
    edit_column(path, 0, "email", lambda meta_data: delattr(meta_data, "bloom_filter_length"))
    plan = _plan(path, "email")
    assert [(f.action, f.reason) for f in plan.filters] == [
        ("kept", "its missing length was added")
    ]
    _apply(path, plan)
    assert filter_place(path, 0, "email") == place
    assert filter_of(path, 0, "email") == wanted


def test_a_column_that_can_have_no_filter_is_refused(tmp_path: Path) -> None:
    table = customers(3).append_column("flag", [[True, False, True]])
    path = write(tmp_path / "x.parquet", table)
    with pytest.raises(UnsupportedFeatureError, match="flag is BOOLEAN"):
        _plan(path, "id", "flag")


def test_a_policy_broken_in_a_later_row_group_stops_the_plan(tmp_path: Path) -> None:
    path = write(tmp_path / "x.parquet", customers(20), Mode.UNIFORM)
    rules = {"email": ColumnRule(path="email", key="k_pii", bloom=BloomFilterOptions())}
    policy = KeyPolicy(footer_key="k_footer", columns=rules)
    with opened(path) as it, pytest.raises(PolicyError, match="k_pii") as caught:
        plan_rewrite(it.file, it.keys, filter_request(None, policy))
    assert (caught.value.row_group, caught.value.column) == (0, "email")


def test_filters_built_in_threads_are_those_built_one_by_one(tmp_path: Path) -> None:
    path = write(tmp_path / "x.parquet", customers(300), row_group_size=20)
    request = filter_request(["email", "id", "city"], None)
    with opened(path) as it, ThreadPoolExecutor(4) as executor:
        alone = plan_rewrite(it.file, it.keys, request)
        together = plan_rewrite(it.file, it.keys, request, run=executor.map)
        with pytest.raises(ValueError, match="zip"):
            plan_rewrite(it.file, it.keys, request, run=lambda _work, _tasks: iter(()))
        assert alone.keep == it.footer.tail.offset
    assert together == alone


def test_the_largest_chunks_are_begun_first(tmp_path: Path) -> None:
    path = write(tmp_path / "x.parquet", customers(300), row_group_size=200)
    begun = []

    def run(
        work: Callable[[rewrite_plan.Task], rewrite_plan.ChunkOutcome],
        tasks: Iterable[rewrite_plan.Task],
    ) -> Iterator[rewrite_plan.ChunkOutcome]:
        for task in tasks:
            begun.append((task.chunk.row_group, task.chunk.leaf.name))
            yield work(task)

    with opened(path) as it:
        plan = plan_rewrite(it.file, it.keys, filter_request(["id", "iban"], None), run=run)
    assert begun == [(0, "iban"), (1, "iban"), (0, "id"), (1, "id")]
    order = [(0, "iban"), (0, "id"), (1, "iban"), (1, "id")]
    assert [(f.row_group, f.column) for f in plan.filters] == order


def test_a_filter_in_every_leaf_below_a_name(tmp_path: Path) -> None:
    table = pa.table({"address": [{"zip": "1", "city": "oslo"}], "tags": [["a", "b"]]})
    path = write(tmp_path / "x.parquet", table)
    _apply(path, _plan(path, "address.*", "tags.list.element"))
    for leaf in ("address.zip", "address.city", "tags.list.element"):
        assert filter_of(path, 0, leaf).fill() > 0
    assert sb.probe(path, "address.zip", ["1", "2"]).verdicts == {
        sb.Verdict.MAYBE,
        sb.Verdict.ABSENT,
    }


def test_a_filter_that_misses_values_is_told_when_it_is_replaced(tmp_path: Path) -> None:
    path = write(tmp_path / "x.parquet", customers(60), row_group_size=60)
    _apply(path, _plan(path, "email"))
    place = filter_place(path, 0, "email")
    content = bytearray(path.read_bytes())
    content[place.stop - 32 : place.stop] = bytes(32)
    path.write_bytes(content)
    plan = _plan(path, "email", replace_filters=True)
    (report,) = plan.filters
    assert report.action == "replaced"
    assert "missed" in (report.reason or "")
    _apply(path, plan)
    (again,) = _plan(path, "email", replace_filters=True).filters
    assert again.reason is None


def test_two_remarks_on_one_filter_are_told_both(tmp_path: Path) -> None:
    path = write(tmp_path / "x.parquet", customers(1000))
    _apply(path, _plan(path, "email"))
    place = filter_place(path, 0, "email")
    content = bytearray(path.read_bytes())
    content[place.stop - 1024 : place.stop] = bytes(1024)
    path.write_bytes(content)
    options = {"email": BloomFilterOptions(max_bytes=32)}
    with opened(path) as it:
        request = filter_request(options, None, replace_filters=True)
        (report,) = plan_rewrite(it.file, it.keys, request).filters
    missed, bound = str(report.reason).split("; ")
    assert missed.startswith("the old one missed ")
    assert bound == "max_bytes 32 is too small for the fpp"


class Ahead(CountedFile):
    """A file that notes what is to be fetched ahead."""

    def read_ahead(
        self, extents: Sequence[tuple[int, int]], *, to_replace: bool = False, room: int = 0
    ) -> None:
        self.fetched = (list(extents), to_replace)


@pytest.mark.parametrize("replace", [False, True])
def test_the_chunks_that_are_hashed_are_fetched_ahead(tmp_path: Path, replace: bool) -> None:
    path = write(tmp_path / "x.parquet", customers(60), row_group_size=20)
    _apply(path, _plan(path, "email"))
    request = filter_request(["email", "id"], None, replace_filters=replace)
    with opened(path) as it:
        spy = Ahead(it.file)
        plan_rewrite(spy, it.keys, request)
        chunks = [it.chunk(group, name) for group in range(3) for name in ("email", "id")]
        extents = [
            (start, start + length)
            for chunk in chunks
            if replace or chunk.leaf.name == "id"
            for start, length in [chunk_extent(chunk)]
        ]
    assert spy.fetched == (extents, True)


def test_an_empty_chunk_is_not_fetched(tmp_path: Path) -> None:
    path = write(tmp_path / "x.parquet", customers(20))
    edit_column(path, 0, "email", lambda meta: setattr(meta, "data_page_offset", 0))
    with opened(path) as it:
        spy = Ahead(it.file)
        with pytest.raises(FormatError):
            plan_rewrite(spy, it.keys, filter_request(["email"], None))
    assert spy.fetched == ([], True)


def test_an_estimate_is_of_some_row_groups(tmp_path: Path) -> None:
    path = write(tmp_path / "x.parquet", customers(80), row_group_size=20)
    with opened(path) as it:
        plan = plan_rewrite(it.file, it.keys, filter_request(["id"], None), row_groups={3, 1})
    assert [report.row_group for report in plan.filters] == [1, 3]


@pytest.mark.parametrize("mode", [Mode.UNIFORM, Mode.ENCRYPTED], ids=lambda mode: mode.name)
def test_what_appends_have_left_is_given_back(tmp_path: Path, mode: Mode) -> None:
    path = write(tmp_path / "x.parquet", customers(40), mode)
    data = _footer_start(path)
    for _ in range(2):
        _apply(path, _plan(path, "email", append=True, replace_filters=True))
    assert _plan(path, "email", replace_filters=True).keep == data
