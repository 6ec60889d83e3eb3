"""Lakes that show nothing are clean, whatever else lies in them."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import deltalake
import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

import secure_bloom as sb
from secure_bloom.auditing.rules.unchecked_rules import OTHER_FILES
from testing.iceberg_tables import iceberg
from testing.tables import KEYRING, Mode, customers, write
from tests.auditing.datasets import batch, ids
from tests.auditing.examples import POLICY, Example, filtered, rules, sound

LAKES: dict[str, Callable[[Path], Example]] = {}


def lake(build: Callable[[Path], Example | None]) -> None:
    def made(folder: Path) -> Example:
        return build(folder) or Example(path=folder)

    LAKES[build.__name__.replace("_", " ").strip()] = made


@lake
def files_of_many_kinds(folder: Path) -> None:
    sound(folder)
    (folder / "_SUCCESS").write_text("")
    (folder / "zeros").write_bytes(bytes(1_000_000))
    (folder / "PAR1").write_text("PAR1 is how Parquet files begin, and they end in PAR1")
    with sqlite3.connect(folder / "x.sqlite") as database:
        database.execute("create table t (a)")
        database.executemany("insert into t values (?)", [(i,) for i in range(5000)])
    pa.ipc.new_file(folder / "x.arrow", pa.schema({"a": pa.int64()})).close()
    (folder / "link.bak").symlink_to(folder / "x.parquet")
    (folder / "hard.bak").hardlink_to(folder / "x.parquet")


@lake
def copies_that_obey(folder: Path) -> None:
    sound(folder)
    for name in ("x.parquet.bak", "_temporary/x.parquet", "_metadata.bak"):
        (folder / name).parent.mkdir(exist_ok=True)
        write(folder / name, customers(60), Mode.ENCRYPTED)


@lake
def copies_without_a_sensitive_column(folder: Path) -> None:
    sound(folder)
    write(folder / "cities.bak", customers(60).select(["city", "score"]))


@lake
def filters_of_all_columns(folder: Path) -> None:
    filtered(folder, "email", "iban", "city", "id", "score")


@lake
def filters_and_page_indexes_in_place(folder: Path) -> None:
    table = customers(3000)
    path = sound(folder, table=table, write_page_index=True, data_page_size=512)
    for column in ("city", "id"):
        run = sb.add_bloom_filters(path, columns=[column], keys=KEYRING, in_place=True)
        assert not run.failed


@lake
def columns_with_names_that_are_near(folder: Path) -> None:
    table = customers(60)
    for name in ("ibis", "mailing", "e", "emai", "mail_count", "e1", "emailed"):
        table = table.append_column(name, table["city"])
    sound(folder, table=table)


@lake
def a_lake_after_a_rotation(folder: Path) -> None:
    batch(folder, 2)
    assert not sb.rotate_keys(folder, policy=POLICY, keys=KEYRING).failed


def _policy_without_iban() -> sb.KeyPolicy:
    return replace(POLICY, columns=rules(email="k_pii"))


@lake
def a_delta_table_that_was_encrypted_and_cleaned_up(folder: Path) -> Example:
    options = {"configuration": {"delta.dataSkippingStatsColumns": "id,city"}}
    rows = customers(60).select(["id", "city", "email"])
    deltalake.write_deltalake(folder, rows, **options)
    policy = _policy_without_iban()
    assert not sb.reencrypt(folder, policy=policy, keys=KEYRING).failed
    table = deltalake.DeltaTable(folder)
    table.vacuum(0, enforce_retention_duration=False, dry_run=False)
    table.create_checkpoint()
    return Example(path=folder, policy=policy)


@lake
def an_iceberg_table_without_a_sensitive_column(folder: Path) -> Example:
    options = {"ignore": ["policy-column-unknown", "footer-not-encrypted"]}
    location = Path(iceberg(folder).metadata_location)
    return Example(path=location, policy=_policy_without_iban(), options=options)


@lake
def partitions_and_a_summary(folder: Path) -> None:
    table = customers(60)
    for city in ("rome", "oslo"):
        below = folder / f"city={city}"
        below.mkdir()
        rows = table.filter(ds.field("city") == city).drop_columns("city")
        write(below / "x.parquet", rows, Mode.ENCRYPTED)
    pq.write_metadata(table.schema.remove_metadata(), folder / "_common_metadata")


@pytest.mark.parametrize("values", [False, True], ids=["", "values"])
@pytest.mark.parametrize("name", LAKES)
def test_a_lake_that_shows_nothing_is_clean(tmp_path: Path, name: str, values: bool) -> None:
    folder = tmp_path / "lake"
    folder.mkdir()
    report = LAKES[name](folder).audit(check_values=values)
    assert [finding.message for finding in report.findings] == []


def test_noise_is_clean_until_values_are_searched_for(tmp_path: Path) -> None:
    sound(tmp_path)
    (tmp_path / "noise.bin").write_bytes(np.random.default_rng(1).bytes(6 * 1024 * 1024))
    assert ids(Example(path=tmp_path).audit()) == []
    (found,) = Example(path=tmp_path).audit(check_values=True).findings
    assert (found.id, "look packed or encrypted" in found.message) == ("unchecked-copy", True)


def test_other_files_are_one_note(tmp_path: Path) -> None:
    sound(tmp_path)
    for name in ("export.csv", "backup.zip", "a.txt", "b.txt", "c.txt", "d.txt"):
        (tmp_path / name).write_text("some text")
    report = Example(path=tmp_path).audit()
    (note,) = report.notes
    assert (ids(report), note.id, note.path) == ([], OTHER_FILES.id, str(tmp_path))
    assert note.what == (
        "6 other files were not looked at: a.txt, b.txt, backup.zip, c.txt, d.txt, ..."
    )
