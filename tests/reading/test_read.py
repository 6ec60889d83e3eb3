"""What a reader of encrypted tables gets: rows, limits, columns, errors that name the place."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pyarrow.parquet.encryption as pe
import pytest

import secure_bloom as sb
from secure_bloom.encryption.kms import ExplicitKeys, Keyring
from secure_bloom.errors import (
    FileChangedError,
    IntegrityError,
    KeyUnavailableError,
    PolicyError,
)
from testing.surgery import assert_tells_no_secret, filter_place, flip, opened
from testing.tables import KEYRING, MASTER_KEYS, Mode, customers, made_once, write

EMAIL = "user77@example.com"
ROWS = 3000


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    """Three encrypted files of 1,000 customers each, with filters on the e-mails."""
    _write_lake(tmp_path / "lake")
    return tmp_path / "lake"


@made_once
def _write_lake(folder: Path) -> None:
    for part in range(3):
        rows = customers(ROWS).slice(part * 1000, 1000)
        write(folder / f"{part}.parquet", rows, Mode.ENCRYPTED, row_group_size=250)
    report = sb.add_bloom_filters(folder, columns=["email"], keys=KEYRING)
    assert not report.failed


def test_one_row_of_an_encrypted_table(lake: Path) -> None:
    found = sb.read_table(lake, where=[("email", "=", EMAIL)], keys=KEYRING)
    assert found.equals(customers(ROWS).filter(pc.field("email") == EMAIL))


@pytest.mark.parametrize(
    "where",
    [
        [("email", "=", EMAIL)],
        [[("email", "=", EMAIL)], [("id", "=", 5)]],
        ("or", ("email", "=", EMAIL), ("and", ("id", "<", 9), ("score", "is null"))),
        pc.field("email") == EMAIL,
        (pc.field("id") < 9) & ~pc.field("city").isin(["rome"]),
        ~(pc.field("score") < 0),
        pc.field("score").is_null() | (pc.scalar(2990) < pc.field("id")),
        f"email = '{EMAIL}'",
        "id in (1, 2, 5000) or (\"city\" <> 'rome' and not id >= 10)",
        "score > 1.5 and score is not null",
        None,
    ],
    ids=str,
)
def test_the_three_ways_to_ask_give_the_rows_of_a_full_scan(lake: Path, where: object) -> None:
    whole = customers(ROWS)
    field = pc.field
    wanted = {
        "or": (field("email") == EMAIL) | ((field("id") < 9) & field("score").is_null()),
        "list": (field("email") == EMAIL) | (field("id") == 5),
        "id in": (field("id").isin([1, 2])) | ((field("city") != "rome") & (field("id") < 10)),
        "score >": field("score") > 1.5,
    }
    if where is None:
        expected = whole
    elif isinstance(where, pc.Expression):
        expected = whole.filter(where)
    else:
        text = where if isinstance(where, str) else "list" if where == _LISTS else str(where[0])
        key = next((key for key in wanted if text.startswith(key)), None)
        expected = whole.filter(wanted[key] if key else field("email") == EMAIL)
    assert sb.read_table(lake, where=where, keys=KEYRING).equals(expected)


_LISTS = [[("email", "=", EMAIL)], [("id", "=", 5)]]


def test_columns_come_in_the_order_of_the_request(lake: Path) -> None:
    found = sb.read_table(lake, where="id < 3", columns=["city", "id"], keys=KEYRING)
    assert found.column_names == ["city", "id"]
    assert sorted(found.column("id").to_pylist()) == [0, 1, 2]


def test_a_limit_stops_the_read_early(lake: Path) -> None:
    whole = customers(ROWS).filter(pc.field("city") == "oslo")
    for limit in (0, 1, 300, 10_000):
        found = sb.read_table(lake, where="city = 'oslo'", limit=limit, keys=KEYRING)
        assert found.equals(whole.slice(0, limit))
    (lake / "2.parquet").write_bytes(b"not any more")
    batches = sb.read_batches(lake / "0.parquet", keys=KEYRING)
    assert next(batches).num_rows > 0
    batches.close()  # type: ignore[attr-defined]  # it is a generator, of which this is no promise


def test_no_row_has_the_schema_of_the_table(lake: Path) -> None:
    found = sb.read_table(lake, where=[("email", "=", "nobody")], keys=KEYRING)
    assert found.num_rows == 0
    assert found.schema == customers(ROWS).schema


def test_batches_are_those_of_the_table(lake: Path) -> None:
    batches = list(sb.read_batches(lake, where="city = 'oslo'", keys=KEYRING))
    table = sb.read_table(lake, where="city = 'oslo'", keys=KEYRING)
    assert pa.Table.from_batches(batches).equals(table)


def test_a_key_is_needed_only_for_columns_that_are_read(lake: Path) -> None:
    few = Keyring(master_keys={k: MASTER_KEYS[k] for k in ("k_footer", "k_pii")})
    found = sb.read_table(lake, where=f"email = '{EMAIL}'", columns=["id"], keys=few)
    assert found.column("id").to_pylist() == [77]
    with pytest.raises(KeyUnavailableError, match=r"row group .*, column iban: .*k_finance"):
        sb.read_table(lake, where=f"email = '{EMAIL}'", keys=few)


def test_a_condition_without_its_key_is_an_error_unless_it_may_be_left_out(lake: Path) -> None:
    few = Keyring(master_keys={"k_footer": MASTER_KEYS["k_footer"]})
    ask = {"where": f"email = '{EMAIL}' and id < 100", "columns": ["id"], "keys": few}
    with pytest.raises(KeyUnavailableError, match=r"column email: .*k_pii") as caught:
        sb.read_table(lake, **ask)
    assert "without_filter_keys" in str(caught.value.hint)
    assert_tells_no_secret(str(caught.value))
    with pytest.warns(UserWarning, match="the key of email is missing: its condition is left out"):
        found = sb.read_table(lake, **ask, without_filter_keys=True)
    assert sorted(found.column("id").to_pylist()) == list(range(100))
    notes = [
        note.text
        for file in sb.explain(lake, **ask, without_filter_keys=True).files
        for group in file.row_groups
        for note in group.notes
    ]
    assert "no key for column email: the condition is left out" in notes


@pytest.mark.parametrize(
    "where",
    [
        f"email = '{EMAIL}'",
        f"email = '{EMAIL}' or id < 100",
        f"not (email = '{EMAIL}' and id < 100)",
        f"email in ('{EMAIL}', 'b') and email > 'a'",
    ],
)
def test_a_read_whose_every_condition_may_hold_is_refused(lake: Path, where: str) -> None:
    few = Keyring(master_keys={"k_footer": MASTER_KEYS["k_footer"]})
    ask = {"where": where, "columns": ["id"], "keys": few, "without_filter_keys": True}
    with pytest.raises(sb.PolicyError, match="no condition is left: the key of email"):
        sb.read_table(lake, **ask)


def test_a_condition_without_its_key_is_no_error_where_other_columns_rule_all_out(
    lake: Path,
) -> None:
    few = Keyring(master_keys={"k_footer": MASTER_KEYS["k_footer"]})
    where = f"email = '{EMAIL}' and id > 100000"
    assert sb.read_table(lake, where=where, columns=["id"], keys=few).num_rows == 0


def test_an_altered_filter_is_an_error_that_names_it(lake: Path) -> None:
    path = lake / "1.parquet"
    flip(path, filter_place(path, 2, "email").stop - 5)
    with pytest.raises(IntegrityError, match=r"1\.parquet, row group 2, column email"):
        sb.read_table(lake, where="email = 'user77@example.co'", keys=KEYRING)


@pytest.mark.parametrize("column", ["email", "iban"])
def test_an_altered_page_is_an_error_that_names_it(lake: Path, column: str) -> None:
    path = lake / "1.parquet"
    with opened(path) as it:
        meta_data = it.chunk(3, column).meta_data
        place = meta_data.data_page_offset + meta_data.total_compressed_size // 8
    flip(path, place)
    with pytest.raises(IntegrityError, match=rf"1\.parquet, row group 3, column {column}") as found:
        sb.read_table(lake, keys=KEYRING)
    assert_tells_no_secret(str(found.value))


def test_an_altered_page_is_an_error_where_single_pages_are_read(tmp_path: Path) -> None:
    path = paged(tmp_path)
    with opened(path) as it:
        start = it.chunk(0, "iban").meta_data.data_page_offset
    for offset in (4, 60):
        flip(path, start + offset)
        with pytest.raises(IntegrityError, match="row group 0, column iban"):
            sb.read_table(path, where="id = 0", keys=KEYRING)
        # Without the page that was altered the other rows are there.
        assert sb.read_table(path, where="id = 2999", keys=KEYRING).num_rows == 1
        flip(path, start + offset)


def paged(folder: Path, mode: Mode = Mode.ENCRYPTED) -> Path:
    """One row group of sorted ids in pages of a hundred rows."""
    table = customers(ROWS).sort_by("id")
    nested = pa.array([{"a": i, "b": [i, i]} for i in range(ROWS)])
    table = table.append_column("nested", nested).append_column(
        "list", pa.array([[str(i)] * (i % 4) for i in range(ROWS)])
    )
    return write(
        folder / f"{mode.name}.parquet",
        table,
        mode,
        row_group_size=ROWS,
        write_batch_size=100,
        data_page_size=1,
        write_page_index=True,
        use_dictionary=["city"],
    )


@pytest.mark.parametrize("mode", list(Mode))
@pytest.mark.parametrize("where", ["id = 1234", "id in (5, 2999, 40)", "id > 2890", "city = 'x'"])
def test_only_pages_that_may_match_are_read(tmp_path: Path, mode: Mode, where: str) -> None:
    path = paged(tmp_path, mode)
    whole = pq.ParquetFile(paged(tmp_path, Mode.PLAIN)).read()
    wanted = {
        "id = 1234": pc.field("id") == 1234,
        "id in (5, 2999, 40)": pc.field("id").isin([5, 2999, 40]),
        "id > 2890": pc.field("id") > 2890,
        "city = 'x'": pc.field("city") == "x",
    }[where]
    assert sb.read_table(path, where=where, keys=KEYRING).equals(whole.filter(wanted))
    report = sb.explain(path, where=where, keys=KEYRING, columns=["id", "email", "list"])
    assert report.bytes_read < 0.5 * report.bytes_full_scan + 70_000
    (group,) = report.files[0].row_groups
    if where != "city = 'x'":
        assert sum(end - start for start, end in group.ranges or [(0, ROWS)]) <= 400


def test_pages_are_skipped_by_the_index_alone(tmp_path: Path) -> None:
    path = paged(tmp_path)
    (group,) = sb.explain(path, where="id = 1234", keys=KEYRING).files[0].row_groups
    assert group.ranges == ((1200, 1300),)


def test_a_plan_is_carried_out_elsewhere(lake: Path) -> None:
    plan = sb.plan_read(lake, where="email = 'user77@example.com'", columns=["id"], keys=KEYRING)
    shipped = pickle.loads(pickle.dumps(plan))
    found = [b for file in shipped.files for b in sb.read_row_groups(shipped, file, keys=KEYRING)]
    assert pa.Table.from_batches(found, schema=plan.schema).column("id").to_pylist() == [77]
    every = sb.plan_read(lake, keys=KEYRING)
    assert sum(len(file.row_groups) for file in every.files) == 12
    rows = [b for file in every.files for b in sb.read_row_groups(every, file, keys=KEYRING)]
    assert pa.Table.from_batches(rows).equals(customers(ROWS))


def test_a_file_that_was_replaced_since_it_was_planned_is_noticed(lake: Path) -> None:
    plan = sb.plan_read(lake, where="id < 100", keys=KEYRING)
    write(lake / "0.parquet", customers(10))
    with pytest.raises(FileChangedError, match=r"0\.parquet"):
        list(sb.read_row_groups(plan, plan.files[0], keys=KEYRING))


@pytest.mark.parametrize(
    ("where", "message"),
    [
        ("emial = 'x'", "there is no column emial"),
        ("id = 'secret'", "column id: the value is not one that the column can hold"),
        ("id = 1_000", "the value at character 6 is not in quotes"),
        ([("email", "~", "secret")], "'~' is not an operator"),
        ([("email", "=", None)], "= with null is never true"),
        ([("id", "in", 5)], "in takes a list of values"),
        ("secret", "needs an operator"),
        (pc.field("id") + 1 == 2, "are not understood"),
        (pc.field("id") == pc.field("score"), "are not understood"),
        (pc.field("score").is_null(nan_is_null=True), "are not understood"),
        (pc.field("id") == pa.scalar(None, pa.int64()), "= with null is never true"),
        (5, "a condition is of type int, wanted a tuple"),
        ([], "the condition is empty"),
    ],
    ids=str,
)
def test_an_invalid_predicate_is_refused_without_its_value(
    lake: Path, where: object, message: str
) -> None:
    with pytest.raises(PolicyError) as caught:
        sb.read_table(lake, where=where, keys=KEYRING)
    assert message in str(caught.value)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("ask", ["columns", "where"])
@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("a.zipp", "did you mean a.zip"),
        ("a.wholly_other", "there are a.geo.lat, a.zip"),
        ("b.zip", "there are a, id"),
    ],
)
def test_an_unknown_member_has_those_of_its_structure_named(
    tmp_path: Path, ask: str, name: str, hint: str
) -> None:
    rows = pa.table({"id": [1], "a": [{"zip": "1", "geo": {"lat": 0.5}}]})
    path = write(tmp_path / "x.parquet", rows, Mode.PLAIN)
    with pytest.raises(PolicyError, match=f"no column {name}") as caught:
        sb.read_table(path, **{ask: [name] if ask == "columns" else f"{name} = '1'"})
    assert hint in str(caught.value.hint)


def test_columns_that_are_not_there_are_refused(lake: Path) -> None:
    with pytest.raises(PolicyError, match="no column emial"):
        sb.read_table(lake, columns=["emial"], keys=KEYRING)
    with pytest.raises(PolicyError, match="columns is of type int, wanted a name or a list"):
        sb.read_table(lake, columns=7, keys=KEYRING)
    assert sb.read_table(lake, columns="email", keys=KEYRING).column_names == ["email"]
    with pytest.raises(PolicyError, match="no column is asked for"):
        sb.read_table(lake, columns=[], keys=KEYRING)


def test_keys_by_their_place_open_files_that_name_other_keys(lake: Path) -> None:
    with opened(lake / "0.parquet") as it:
        assert it.footer.key is not None
        columns = {}
        for name in ("email", "iban"):
            cipher = it.chunk(0, name).cipher
            assert cipher is not None
            columns[name] = cipher.key.key
        keys = ExplicitKeys(footer=it.footer.key.key, columns=columns)
    found = sb.read_table(lake / "0.parquet", where="id >= 0", keys=keys)
    assert found.equals(customers(ROWS).slice(0, 1000))
    few = ExplicitKeys(footer=keys.footer, columns={"email": columns["email"]})
    with pytest.raises(KeyUnavailableError, match="column iban"):
        sb.read_table(lake / "0.parquet", keys=few)


@pytest.mark.parametrize("mode", [Mode.ENCRYPTED, Mode.SIGNED, Mode.UNIFORM])
@pytest.mark.parametrize(
    "encryption",
    [{"encryption_algorithm": "AES_GCM_CTR_V1"}, {"double_wrapping": False}],
    ids=["CTR", "single wrapping"],
)
def test_every_key_scheme(tmp_path: Path, mode: Mode, encryption: dict[str, object]) -> None:
    path = write(tmp_path / "x.parquet", customers(500), mode, encryption=encryption)
    assert sb.read_table(path, keys=KEYRING).equals(customers(500))
    found = sb.read_table(path, where="email = 'user7@example.com'", keys=KEYRING)
    assert found.column("id").to_pylist() == [7]


@pytest.mark.parametrize("algorithm", ["AES_GCM_V1", "AES_GCM_CTR_V1"])
@pytest.mark.parametrize("is_signed", [False, True], ids=["encrypted", "signed"])
@pytest.mark.parametrize("prefix", [None, "stored", "supplied"])
def test_aad_prefixes(tmp_path: Path, algorithm: str, is_signed: bool, prefix: str | None) -> None:
    aad_prefix = None if prefix is None else b"table one"
    properties = pe.create_encryption_properties(
        b"16-bytes-long-k!",
        aad_prefix=aad_prefix,
        store_aad_prefix=prefix == "stored",
        encryption_algorithm=algorithm,
        plaintext_footer=is_signed,
    )
    path = tmp_path / "x.parquet"
    pq.write_table(customers(500), path, row_group_size=100, encryption_properties=properties)
    supplied = aad_prefix if prefix == "supplied" else None
    keys = ExplicitKeys(footer=b"16-bytes-long-k!", aad_prefix=supplied)
    assert sb.read_table(path, keys=keys).equals(customers(500))
    assert sb.read_table(path, where="id = 7", keys=keys).num_rows == 1


def test_a_signed_file_is_read_without_keys_as_far_as_it_is_in_clear(tmp_path: Path) -> None:
    path = write(tmp_path / "x.parquet", customers(500), Mode.SIGNED)
    found = sb.read_table(path, where="id = 7", columns=["city", "score"])
    assert found.num_rows == 1
    report = sb.explain(path, where="id = 7", columns=["city"])
    assert report.files[0].notes == ("the footer's signature was not checked: no footer key",)
    few = Keyring(master_keys={"k_pii": MASTER_KEYS["k_pii"]})
    found = sb.read_table(
        path, where="email = 'user7@example.com'", columns=["id"], keys=few, allow_unverified=True
    )
    assert found.column("id").to_pylist() == [7]


def test_a_signed_footer_that_was_altered_is_an_error(tmp_path: Path) -> None:
    path = write(tmp_path / "x.parquet", customers(500), Mode.SIGNED)
    at = path.read_bytes().rindex(b"score")
    flip(path, at)
    with pytest.raises(IntegrityError, match="the footer signature does not match"):
        sb.read_table(path, where="id = 7", columns=["city"], keys=KEYRING)


def test_filters_and_statistics_leave_few_bytes_to_read(tmp_path: Path) -> None:
    path = write(tmp_path / "x.parquet", customers(20_000), Mode.ENCRYPTED, row_group_size=2000)
    sb.add_bloom_filters(path, columns=["email"], keys=KEYRING)
    report = sb.explain(path, where="email = 'user1x@example.com'", keys=KEYRING)
    assert report.rows == 0
    assert report.skipped["Bloom filter"] >= 8
    assert report.bytes_read < report.bytes_full_scan / 4
    document = report.to_dict()
    assert document["row_groups"] == 10
    assert {"footers", "planning", "rows"} == set(document["seconds"])
    assert_tells_no_secret(str(document))


def test_the_report_says_why_nothing_was_faster(tmp_path: Path) -> None:
    path = write(tmp_path / "x.parquet", customers(500), Mode.ENCRYPTED)
    sb.add_bloom_filters(path, columns=["email"], keys=KEYRING)

    def reasons(where: str) -> list[str]:
        (group,) = sb.explain(path, where=where, keys=KEYRING).files[0].row_groups
        return [note.text for note in group.notes]

    assert "no filter" in reasons("iban = 'DE00000000000000000007'")
    assert any("false-positive probability is" in t for t in reasons("email = 'user7@example.com'"))
    assert "not asked: filters answer = and in, not >" in reasons("email > 'user7'")


def tag_lists(rows: int = 400) -> list[list[str | None] | None]:
    """Lists of few tags; null lists, empty ones, and null elements among them."""
    return [
        None if i % 11 == 0 else [None if (i * k) % 13 == 5 else f"t{i * k}" for k in range(i % 4)]
        for i in range(rows)
    ]


@pytest.mark.parametrize("use_dictionary", [True, False])
@pytest.mark.parametrize("has_filters", [True, False])
@pytest.mark.parametrize(
    ("where", "is_true"),
    [
        ("tags = 't6'", lambda tag: tag == "t6"),
        ("tags = 'nowhere'", lambda tag: tag == "nowhere"),
        ("tags in ('t6', 't797')", lambda tag: tag in ("t6", "t797")),
        ("tags < 't10'", lambda tag: tag < "t10"),
        ("tags >= 't99'", lambda tag: tag >= "t99"),
    ],
)
def test_a_condition_on_a_list_means_any_element(
    tmp_path: Path, where: str, is_true: Any, has_filters: bool, use_dictionary: bool
) -> None:
    tags = tag_lists()
    table = pa.table({"id": range(len(tags)), "tags": tags, "s": [{"tags": t} for t in tags]})
    for kind in (pa.list_(pa.string()), pa.large_list(pa.string())):
        path = tmp_path / f"{kind.id}.parquet"
        of_kind = table.set_column(1, "tags", table["tags"].cast(kind))
        pq.write_table(of_kind, path, row_group_size=50, use_dictionary=use_dictionary)
        if has_filters:
            sb.add_bloom_filters(path, columns=["tags", "s"])
        wanted = [
            i for i, t in enumerate(tags) if any(x is not None and is_true(x) for x in t or ())
        ]
        assert sb.read_table(path, where=where)["id"].to_pylist() == wanted
        assert sb.read_table(path, where=f"s.{where}")["id"].to_pylist() == wanted


def test_filters_rule_row_groups_out_by_elements(tmp_path: Path) -> None:
    tags = [[f"a{i}", f"b{i}"] for i in range(4000)]
    path = tmp_path / "x.parquet"
    pq.write_table(pa.table({"tags": tags}), path, row_group_size=500, use_dictionary=False)
    sb.add_bloom_filters(path, columns={"tags": 0.0001})
    report = sb.explain(path, where="tags = 'b1234'")
    assert (report.rows, report.skipped) == (1, {"Bloom filter": 7})
    # Two elements of one list, each in a row group of its own elsewhere.
    assert sb.read_table(path, where="tags = 'a7' and tags = 'b7'").num_rows == 1
    assert sb.read_table(path, where="tags = 'a7' and tags = 'b8'").num_rows == 0


@pytest.mark.parametrize("where", ["tags != 'x'", "not tags = 'x'", "tags not in ('x')"])
def test_a_negation_on_a_list_is_refused_as_ambiguous(tmp_path: Path, where: str) -> None:
    pq.write_table(pa.table({"tags": [["x"], ["y"]]}), tmp_path / "x.parquet")
    with pytest.raises(PolicyError, match="a list cannot be compared") as caught:
        sb.read_table(tmp_path / "x.parquet", where=where)
    assert "=, >, >=, in" in str(caught.value.hint)


def test_a_list_of_lists_is_not_compared(tmp_path: Path) -> None:
    pq.write_table(pa.table({"deep": [[["x"]]]}), tmp_path / "x.parquet")
    with pytest.raises(PolicyError, match="cannot be compared"):
        sb.read_table(tmp_path / "x.parquet", where="deep = 'x'")
