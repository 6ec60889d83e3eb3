"""Tables with a log of their own are refused by verbs that do not honour it, wherever reached."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import secure_bloom as sb
from secure_bloom import hudi, paimon
from secure_bloom.cli import main
from secure_bloom.hudi.filter_reader import show as hudi_show
from testing.tables import KEYRING, customers, write

LOGS = {
    "Delta": "_delta_log/00000000000000000000.json",
    "Iceberg": "metadata/00000-1b2c.metadata.json",
    "Hudi": ".hoodie/hoodie.properties",
    "Spark Structured Streaming": "_spark_metadata/0",
}
PATHS = ["lake", "lake/table", "lake/table/day=1", "lake/table/day=1/x.parquet", "lake/*/day=1/*"]
READING = {"read", "probe", "audit", "inspect"}
#: What honours a log; tests/lakes shows how.
HONOUR = {
    "Delta": READING,
    "Spark Structured Streaming": READING,
    "Hudi": {"hudi lookup", "hudi show"},
}
POLICY = sb.KeyPolicy(columns={})


def _index(path: str) -> Any:
    return paimon.probe(path, "id = 5")


VERBS: dict[str, Callable[[str], Any]] = {
    "add": lambda path: sb.add_bloom_filters(path, columns=["id"]),
    "read": lambda path: sb.read_table(path),
    "probe": lambda path: sb.probe(path, "id", [1]),
    "audit": lambda path: sb.audit(path, policy=POLICY),
    "inspect": lambda path: sb.inspect(path),
    "paimon build": lambda path: paimon.build_indexes(path, ["id"]),
    "paimon probe": _index,
    "hudi lookup": lambda path: hudi.lookup(path, ["rome"], column="city"),
    "hudi show": hudi_show,
}


def _table(folder: Path, kind: str) -> Path:
    (folder / "lake/table/day=1").mkdir(parents=True)
    write(folder / "lake/table/day=1/x.parquet", customers(10))
    log = folder / "lake/table" / LOGS[kind]
    log.parent.mkdir()
    log.write_text("v1")
    return folder


@pytest.mark.parametrize("kind", LOGS)
@pytest.mark.parametrize("path", PATHS)
def test_a_verb_that_does_not_honour_it_refuses_it(tmp_path: Path, kind: str, path: str) -> None:
    _table(tmp_path, kind)
    before = (tmp_path / "lake/table/day=1/x.parquet").read_bytes()
    for verb, call in VERBS.items():
        if verb in HONOUR.get(kind, ()):
            continue
        if (verb, kind, path) == ("add", "Delta", "lake/table"):
            continue  # its log is honoured: tests/lakes/delta
        with pytest.raises(sb.UnsupportedFeatureError, match=kind) as caught:
            call(f"{tmp_path}/{path}")
        assert "removed or never committed" in str(caught.value)
        assert caught.value.path == str(tmp_path / "lake/table"), verb
        assert caught.value.hint
    assert (tmp_path / "lake/table/day=1/x.parquet").read_bytes() == before


def test_other_folders_are_read(tmp_path: Path) -> None:
    _table(tmp_path, "Delta")
    (tmp_path / "lake/plain/metadata").mkdir(parents=True)
    (tmp_path / "lake/plain/metadata/readme.json").write_text("{}")
    write(tmp_path / "lake/plain/x.parquet", customers(10))
    assert sb.read_table(tmp_path / "lake/plain").num_rows == 10
    assert sb.read_table(tmp_path / "lake/plain/x.parquet").num_rows == 10


def test_the_command_line_says_why(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _table(tmp_path, "Iceberg")
    with pytest.raises(SystemExit) as end:
        main(["read", str(tmp_path / "lake"), "--json"])
    assert end.value.code == 2
    told = capsys.readouterr()
    assert "an Iceberg table: its own log (metadata)" in told.err
    assert json.loads(told.out)["error"]


@pytest.mark.parametrize("kind", sorted(LOGS.keys() - {"Iceberg"}))
@pytest.mark.parametrize("path", PATHS)
def test_a_log_behind_a_broken_link_is_not_passed_over(
    tmp_path: Path, kind: str, path: str
) -> None:
    table, log = tmp_path / "lake/table", Path(LOGS[kind]).parent
    _table(tmp_path, kind)
    (table / log).rename(tmp_path / "elsewhere")
    (table / log).symlink_to(tmp_path / "not mounted")
    before = (table / "day=1/x.parquet").read_bytes()

    for call in (VERBS["add"], VERBS["probe"]):
        with pytest.raises(
            sb.UnsupportedFeatureError, match="or a link that leads nowhere"
        ) as caught:
            call(f"{tmp_path}/{path}")
        assert caught.value.path == str(table)

    assert (table / "day=1/x.parquet").read_bytes() == before


def test_a_file_in_the_place_of_a_log_is_not_passed_over(tmp_path: Path) -> None:
    write(tmp_path / "x.parquet", customers(10))
    (tmp_path / "_delta_log").write_bytes(b"")

    with pytest.raises(sb.UnsupportedFeatureError, match="_delta_log is a file"):
        sb.probe(tmp_path, "id", 5)


def test_the_hint_names_every_table_because_each_needs_a_run_of_its_own(tmp_path: Path) -> None:
    _table(tmp_path / "a", "Delta")
    _table(tmp_path / "b", "Hudi")
    with pytest.raises(sb.UnsupportedFeatureError) as caught:
        sb.add_bloom_filters(tmp_path, columns=["id"])
    for name in ("a", "b"):
        assert str(tmp_path / name / "lake/table") in str(caught.value.hint)


WRITING: dict[str, Callable[[str, str | None], Any]] = {
    "add": lambda path, output: sb.add_bloom_filters(path, columns=["id"], output=output),
    "reencrypt": lambda path, output: sb.reencrypt(
        path, policy=sb.KeyPolicy(footer_key="k_footer", columns={}), keys=KEYRING, output=output
    ),
    "hudi add": lambda path, output: hudi.add_record_key_filter(path, column="city", output=output),
}


@pytest.mark.parametrize("kind", LOGS)
@pytest.mark.parametrize("link", ["file", "folder", "folder above", "two links"])
def test_links_in_a_folder_lead_no_verb_to_files_of_a_table(
    tmp_path: Path, kind: str, link: str
) -> None:
    """The sizes in the table's log would be wrong, and its readers would find no footer."""
    table = _table(tmp_path, kind) / "lake/table"
    live, mine = table / "day=1/x.parquet", tmp_path / "mine"
    mine.mkdir()
    if link == "file":
        (mine / "x.parquet").symlink_to(live)
    elif link == "folder":
        (mine / "day=1").symlink_to(live.parent)
    elif link == "folder above":
        (mine / "lake").symlink_to(table.parent)
    else:
        (tmp_path / "hop").symlink_to(live.parent)
        (mine / "x.parquet").symlink_to(tmp_path / "hop/x.parquet")
    before = live.read_bytes()
    for call in [*WRITING.values(), lambda path, _: paimon.build_indexes(path, ["id"])]:
        with pytest.raises(sb.UnsupportedFeatureError, match="its own log"):
            call(str(mine), None)
    for verb in VERBS.keys() - HONOUR.get(kind, set()):
        with pytest.raises(sb.UnsupportedFeatureError, match="its own log"):
            VERBS[verb](str(mine))
    assert live.read_bytes() == before
    assert {it.name for it in table.rglob("*")} >= {"x.parquet"}
    assert len([*live.parent.iterdir()]) == 1


@pytest.mark.parametrize("kind", LOGS)
@pytest.mark.parametrize("place", ["", "day=1", "new/folder", "link"])
def test_no_output_goes_into_a_table(tmp_path: Path, kind: str, place: str) -> None:
    """A file of the same name would take the place of a live one."""
    table = _table(tmp_path, kind) / "lake/table"
    (tmp_path / "mine").mkdir()
    write(tmp_path / "mine/x.parquet", customers(5))
    (tmp_path / "link").symlink_to(table / "day=1")
    output = tmp_path / "link" if place == "link" else table / place
    before = {it: it.is_file() and it.read_bytes() for it in table.rglob("*")}
    for call in WRITING.values():
        with pytest.raises(sb.UnsupportedFeatureError, match="its own log"):
            call(str(tmp_path / "mine"), str(output))
    assert {it: it.is_file() and it.read_bytes() for it in table.rglob("*")} == before
