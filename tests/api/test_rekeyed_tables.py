"""Options of tables where there is none, and those that one format has and another has not."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import secure_bloom as sb
from secure_bloom.api.rekeyed_tables import open_decryption, open_rotation
from secure_bloom.cli.add_verb import print_add_report
from secure_bloom.errors import PolicyError
from secure_bloom.lakes.formats import ICEBERG
from secure_bloom.lakes.writable_table import TableChoice
from testing.delta_tables import write_table
from testing.tables import KEYRING, Mode, customers, write
from tests.lakes.iceberg.tables import NAME, in_settings, people

POLICY = sb.KeyPolicy(footer_key="k_footer")


@pytest.mark.parametrize("choice", [{"since": 1}, {"branch": "b"}, {"commit_every": 1}], ids=str)
def test_options_of_tables_are_refused_for_files(choice: dict[str, object]) -> None:
    with pytest.raises(PolicyError, match=next(iter(choice))):
        TableChoice(**choice).refuse()  # type: ignore[arg-type]


def test_a_delta_table_has_no_branch(tmp_path: Path) -> None:
    table = write_table(tmp_path / "t", 1)
    with pytest.raises(PolicyError, match="branch is for Iceberg tables"):
        sb.reencrypt(table, policy=POLICY, keys=KEYRING, branch="b")


def test_files_are_decrypted_into_a_folder_alone(tmp_path: Path) -> None:
    with pytest.raises(PolicyError, match="output is needed"):
        sb.decrypt(write_table(tmp_path / "t", 1), keys=KEYRING)


def test_an_iceberg_table_knows_no_time_of_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    people(in_settings(tmp_path, monkeypatch), files=1)
    for opened in (
        lambda choice: open_rotation(ICEBERG, NAME, POLICY, {}, choice),
        lambda choice: open_decryption(ICEBERG, NAME, choice),
    ):
        with pytest.raises(PolicyError, match="takes the id of a snapshot"):
            opened(TableChoice(written=1))


#: Runs over a table: what each needs, and the status of its files.
RUNS: dict[str, Callable[..., Any]] = {
    "add": lambda table, **given: sb.add_bloom_filters(table, columns=["id"], **given),
    "reencrypt": lambda table, **given: sb.reencrypt(table, policy=POLICY, **given),
    "decrypt": lambda table, **given: sb.decrypt(table, **given),
    "rotate": lambda table, **given: sb.rotate_keys(
        table, policy=POLICY, moves={"k_footer": "k_pii"}, **given
    ),
}


@pytest.mark.parametrize("verb", RUNS)
def test_a_report_names_the_new_file_and_the_one_that_it_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, verb: str
) -> None:
    people(in_settings(tmp_path, monkeypatch), files=1)
    delta = write_table(tmp_path / "t", 1, partitioned=False)
    for table in (delta, NAME) if verb != "decrypt" else (NAME,):
        if verb != "add":
            assert not sb.reencrypt(table, policy=POLICY, keys=KEYRING).failed
        planned = RUNS[verb](table, keys=KEYRING, dry_run=True)
        assert {it.new_path for it in planned.files} == {None}
        report = RUNS[verb](table, keys=KEYRING)
        if verb == "reencrypt":
            assert {it.new_path for it in report.files} == {None}
            report = RUNS[verb](table, keys=KEYRING, new_data_keys=True)
        (file,) = report.files
        (replaced,) = report.commits[0].files
        assert file.path.endswith(Path(replaced.removed).name)
        assert str(file.new_path).endswith(Path(replaced.added).name)
        assert Path(str(file.new_path)).stat().st_size == file.bytes_after
        assert Path(file.path).stat().st_size == file.bytes_before
        assert report.to_dict()["files"][0]["new_path"] == file.new_path
        assert set(report.to_arrow()["new_path"].to_pylist()) == {file.new_path}


def test_the_next_report_has_the_new_files_by_the_same_paths(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    people(in_settings(tmp_path, monkeypatch), files=1)
    write_table(tmp_path / "t", 2, partitioned=True)
    for table in ("t", "./t", str(tmp_path / "t"), NAME):
        first = sb.add_bloom_filters(table, columns=["id"], replace_filters=True)
        again = sb.add_bloom_filters(table, columns=["id"])
        assert {it.new_path for it in first.files} == {it.path for it in again.files}
        assert "/./" not in str(first.to_dict()["files"])


@pytest.mark.parametrize("verb", ["add", "reencrypt", "decrypt"])
def test_a_report_names_the_file_below_output(tmp_path: Path, verb: str) -> None:
    (tmp_path / "in").mkdir()
    write(tmp_path / "in" / "x.parquet", customers(60), Mode.ENCRYPTED)
    (file,) = RUNS[verb](tmp_path / "in", keys=KEYRING, output=tmp_path / "out").files
    assert file.error is None
    assert file.new_path == str(tmp_path / "out" / "x.parquet")
    assert Path(file.new_path).stat().st_size == file.bytes_after


def test_the_printed_table_names_the_new_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = write_table(tmp_path / "t", 1, partitioned=False)
    report = sb.add_bloom_filters(table, columns=["id"])
    print_add_report(report, verbose=False)
    (file,) = report.files
    shown = capsys.readouterr().out
    assert Path(str(file.new_path)).name in shown
    assert f"{Path(file.path).name} " not in shown
