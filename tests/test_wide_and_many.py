"""Work grows with the size of a file and no faster: wide tables, many pages, many rules."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from unittest import mock

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import secure_bloom as sb
from secure_bloom.auditing import file_audit
from secure_bloom.auditing.checks import traced_values
from secure_bloom.encryption.file_keys import KeyResolver
from secure_bloom.encryption.policy_tables import ColumnRule
from secure_bloom.encryption.spark_columns import spark_problems
from secure_bloom.inspecting import policy_problems
from secure_bloom.parquet import memory_files
from secure_bloom.parquet.column_values import read_encoded, read_entries
from secure_bloom.parquet.footer.columns import SchemaCache
from secure_bloom.parquet.footer.locate import read_tail
from secure_bloom.parquet.footer.opened import read_footer
from secure_bloom.predicates.bound_request import request, whole_schema
from secure_bloom.storage import open_input
from testing import tables
from testing.growth import calls, growth
from testing.tables import Mode


def wide(path: Path, columns: int) -> Path:
    pq.write_table(pa.table({f"c{n}": pa.array([n], pa.int64()) for n in range(columns)}), path)
    return path


@pytest.mark.parametrize(
    "verb",
    [
        lambda path: sb.read_table(path),
        lambda path: sb.read_table(path, where="c1 = 1"),
        lambda path: sb.probe(path, "c1", [1]),
        lambda path: sb.inspect(path),
        lambda path: sb.add_bloom_filters(path, columns=["c1"], dry_run=True),
    ],
    ids=["read", "read where", "probe", "inspect", "add"],
)
def test_verbs_on_wide_tables_are_linear(tmp_path: Path, verb: object) -> None:
    paths = {n: str(wide(tmp_path / f"{n}.parquet", n)) for n in (200, 800)}
    verb(paths[800])  # type: ignore[operator]
    assert growth(lambda n: verb(paths[n]), 200) < 5  # type: ignore[operator]


class CountedSchema:
    """A schema that counts how often its names are listed, which takes time for each column."""

    def __init__(self, schema: pa.Schema) -> None:
        self.schema = schema
        self.listed = 0

    @property
    def names(self) -> list[str]:
        self.listed += 1
        return self.schema.names

    def __getattr__(self, name: str) -> object:
        return getattr(self.schema, name)


def test_the_names_of_a_schema_are_listed_once() -> None:
    schema = CountedSchema(whole_schema(pa.schema({f"c{n}": pa.int64() for n in range(50)}), ()))
    request(schema, (), list(schema.schema.names), None, ())  # type: ignore[arg-type]
    assert schema.listed <= 2


def test_a_file_finds_the_leaves_of_all_columns_in_one_pass(tmp_path: Path) -> None:
    with open_input(str(wide(tmp_path / "x.parquet", 300))) as file:
        columns = read_footer(file, KeyResolver(None), SchemaCache()).columns
    passes = 0

    class Counted(tuple):  # type: ignore[type-arg]
        def __iter__(self):  # type: ignore[no-untyped-def]
            nonlocal passes
            passes += 1
            return super().__iter__()

    object.__setattr__(columns, "leaves", Counted(columns.leaves))
    assert [list(columns.below(f"c{n}")) for n in range(300)] == [[n] for n in range(300)]
    assert passes == 1
    assert list(columns.below("none")) == []


@pytest.mark.parametrize("is_secret", [False, True], ids=["clear", "encrypted"])
@pytest.mark.parametrize("verb", ["read", "explain"])
def test_a_condition_for_each_column_looks_at_no_pair_of_columns(
    tmp_path: Path, verb: str, is_secret: bool
) -> None:
    ask = {"read": sb.read_table, "explain": sb.explain}[verb]

    def asked(columns: int) -> None:
        path = tmp_path / f"{columns}.parquet"
        if not path.exists():
            values = {f"c{n}": pa.array([n], pa.int64()) for n in range(columns)}
            if is_secret:
                secret_file(path, pa.table(values))
            else:
                pq.write_table(pa.table(values), path)
        ask(str(path), where=[(f"c{n}", "=", n) for n in range(columns)], keys=tables.KEYRING)

    assert growth(asked, 50) < 5


def test_folders_inside_each_other_are_looked_at_once(tmp_path: Path) -> None:
    """A name of a folder is not compared again for each folder below it."""

    def audited(depth: int) -> None:
        folder = tmp_path.joinpath(str(depth), *(f"p{n}={n}" for n in range(depth)))
        if not folder.exists():
            folder.mkdir(parents=True)
            pq.write_table(pa.table({"a": [1]}), folder / "x.parquet")
        sb.audit(str(tmp_path / str(depth)), policy=secret_columns(["a"]), keys=tables.KEYRING)

    # One call of split for each part of a path would be 16 times as many.
    assert growth(audited, 40) < 5


def test_a_policy_for_columns_that_a_table_lacks_is_checked_without_pairs(tmp_path: Path) -> None:
    """Nor does a hint list all columns of the table for each of them."""
    path = str(wide(tmp_path / "x.parquet", 300))

    def check(rules: int) -> None:
        file = tmp_path / f"{rules}.toml"
        columns = "".join(
            f'[columns."missing{n}"]\nkey = "k"\nbloom = true\n' for n in range(rules)
        )
        file.write_text(f'[footer]\nkey = "k"\n{columns}')
        found = policy_problems.check_policy(file, table=path)
        assert len(found.problems) == rules
        assert all(len(it.hint) < 500 for it in found.problems)

    assert growth(check, 150) < 5


@pytest.mark.parametrize("dictionary", [False, True])
def test_a_small_page_takes_few_calls(tmp_path: Path, dictionary: bool) -> None:
    """Not one call for each page: pyarrow takes 1 microsecond to decode one."""

    def read(rows: int) -> None:
        with open_input(str(tmp_path / f"{rows}.parquet")) as file:
            footer = read_footer(file, KeyResolver(None), SchemaCache())
            for _ in read_encoded(file, footer.chunk(0, 0)).entries:
                pass

    for rows in (1000, 4000):
        pq.write_table(
            pa.table({"a": [f"text{n % (7 if dictionary else rows)}" for n in range(rows)]}),
            tmp_path / f"{rows}.parquet",
            use_dictionary=dictionary,
            data_page_size=1,
            write_batch_size=1,
        )
    assert growth(read, 1000) < 4.5
    assert calls(lambda: read(4000)) < 2 * 4000


def secret_file(path: Path, table: pa.Table) -> Path:
    """Write a file whose columns all have one key."""
    keys = {"k_pii": table.column_names}
    return tables.write(path, table, Mode.ENCRYPTED, column_keys=keys)


def secret_columns(names: Iterable[str]) -> sb.KeyPolicy:
    rules = {name: ColumnRule(path=name, key="k_pii") for name in names}
    return sb.KeyPolicy(footer_key="k_footer", columns=rules)


def audit_values(path: Path, names: Iterable[str]) -> None:
    policy = secret_columns(names)
    assert sb.audit(
        str(path), policy=policy, keys=tables.KEYRING, check_values=True
    ).columns_checked


def test_an_audit_with_values_opens_each_chunk_a_few_times(tmp_path: Path) -> None:
    """It reads the values of one column after the other, and opens no other column for them."""
    table = pa.table({f"c{n}": [n] for n in range(40)})
    path = secret_file(tmp_path / "x.parquet", table)
    with (
        mock.patch.object(file_audit, "_open_chunk", wraps=file_audit._open_chunk) as opened,
        mock.patch.object(file_audit, "read_tail", wraps=read_tail) as footers,
    ):
        audit_values(path, table.column_names)
    assert opened.call_count < 8 * 40
    # Not once for each column.
    assert footers.call_count == 2


def test_an_audit_with_values_reads_them_a_few_times_whatever_the_number_of_files(
    tmp_path: Path,
) -> None:
    """Each footer has texts that may be digests: they are compared with the values at the end."""
    for files in (3, 12):
        (tmp_path / str(files)).mkdir()
        for n in range(files):
            table = pa.table({"a": [f"u{n}@example.com"]})
            secret_file(tmp_path / str(files) / f"{n}.parquet", table)
    with mock.patch.object(traced_values, "read_entries", wraps=read_entries) as read:
        audit_values(tmp_path / "12", ["a"])
    # Names of the folders above may look like digests as well.
    assert read.call_count <= 5 * 12


def test_reencrypting_many_columns_compares_no_column_with_each_rule(tmp_path: Path) -> None:
    def reencrypt(columns: int) -> None:
        names = [f"c{n}" for n in range(columns)]
        source = str(wide(tmp_path / f"{columns}.parquet", columns))
        sb.reencrypt(
            source,
            policy=secret_columns(names),
            keys=tables.KEYRING,
            output=str(tmp_path / "new"),
            jobs=1,
        )

    assert growth(reencrypt, 200) < 5


def test_checking_a_policy_of_many_rules_compares_no_pair_of_them() -> None:
    def check(rules: int) -> None:
        policy = secret_columns(f"c{n}" for n in range(rules))
        assert not list(spark_problems(policy))

    assert growth(check, 200) < 5


def test_the_columns_of_an_index_of_paimon_are_found_by_name() -> None:
    columns = tuple(
        sb.paimon.ColumnIndexes(name=f"c{n}", indexes=(sb.paimon.Index(type="x", body=None),))
        for n in range(50)
    )
    index = sb.paimon.FileIndex(columns=columns)
    read = mock.PropertyMock(side_effect=AssertionError("went through all columns"))
    with mock.patch.object(sb.paimon.FileIndex, "columns", read):
        assert index.indexes("c49")
        assert not index.indexes("none")


def test_advice_on_many_row_groups_tries_some_of_them(tmp_path: Path) -> None:
    def advise(groups: int) -> None:
        table = pa.table({"a": list(range(2 * groups))})
        pq.write_table(table, tmp_path / f"{groups}.parquet", row_group_size=2)
        sb.advise(str(tmp_path / f"{groups}.parquet"))

    assert growth(advise, 200) < 2.5


def test_files_of_one_schema_share_the_columns_without_members(tmp_path: Path) -> None:
    """A schema is made for each member once, not for each file that a read of a member opens."""
    for number in range(5):
        rows = [{"first": it, "second": str(it), "third": it} for it in range(3)]
        pq.write_table(pa.table({"person": rows}), tmp_path / f"{number}.parquet")
    with mock.patch.object(
        memory_files, "arrow_schema", side_effect=memory_files.arrow_schema
    ) as made:
        found = sb.read_table(tmp_path, columns=["person.first"])
    assert found.num_rows == 15
    # Of the whole schema, and of the two that lead to the one without the other members.
    assert made.call_count <= 3


def test_the_fixes_of_many_findings_are_linear(tmp_path: Path) -> None:
    """Each column has a finding; whether its file lacks a column is asked once."""

    def policy(columns: int) -> Path:
        rules = "".join(f'[columns.c{n}]\nkey = "k_pii"\n' for n in range(columns))
        path = tmp_path / f"{columns}.toml"
        path.write_text(f'[footer]\nkey = "k_footer"\n{rules}')
        return path

    given = {n: (wide(tmp_path / f"{n}.parquet", n), policy(n)) for n in (50, 200)}
    assert (
        growth(lambda n: sb.audit(given[n][0], policy=given[n][1], keys=tables.KEYRING), 50) < 5.2
    )
