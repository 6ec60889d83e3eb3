"""``secure-bloom paimon`` as its users meet it: exit codes, stdout and stderr."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from secure_bloom import paimon
from secure_bloom.cli import main
from secure_bloom.paimon import FileIndex
from testing.tables import KEYRING, Mode, customers, keyring_json, write
from tests.paimon.bitmaps import bitmap

Ran = tuple[int, str, str]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]):
    def run_cli(*arguments: object) -> Ran:
        with pytest.raises(SystemExit) as ended:
            main([str(argument) for argument in arguments])
        out, err = capsys.readouterr()
        return int(ended.value.code or 0), out, err

    return run_cli


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    for part in range(2):
        ids = range(100 * part, 100 * part + 100)
        table = pa.table({"id": pa.array(ids, pa.int64()), "name": [f"n{i}" for i in ids]})
        pq.write_table(table, tmp_path / f"{part}.parquet")
    return tmp_path


def test_build_probe_and_show_do_the_main_job(lake: Path, run) -> None:
    code, out, _ = run("paimon", "build", lake, "--column", "id:fpp=0.001", "--column", "name")
    assert code == 0
    assert "0.parquet" in out
    code, out, _ = run("paimon", "probe", lake, "id = 5 and name = 'n5'")
    assert code == 0
    assert f"1 of 2 files may have such rows\n  {lake / '0.parquet'}\n" in out
    code, out, _ = run("paimon", "show", lake)
    assert code == 0
    assert "bloom-filter" in out


def test_the_exit_code_of_probe_is_its_answer(lake: Path, run) -> None:
    assert run("paimon", "probe", lake, "id = 5")[0] == 3
    run("paimon", "build", lake, "--column", "id")
    assert run("paimon", "probe", lake, "id = 5")[0] == 0
    assert run("paimon", "probe", lake, "id in (5000, 6000) and id = 7000")[0] == 1
    code, _, err = run("paimon", "probe", lake, "id = no-number")
    assert code == 2
    assert err.startswith("secure-bloom: error: ")
    assert "no-number" not in err


def test_json_is_one_document(lake: Path, run) -> None:
    built = json.loads(run("paimon", "build", lake, "--column", "id", "--json")[1])
    first = built["files"][0]
    assert (first["status"], first["index"]) == ("built", str(lake / "0.parquet.index"))
    assert first["columns"][0]["items"] == 100
    probed = json.loads(run("paimon", "probe", lake, "id = 5", "--json")[1])
    assert [file["verdict"] for file in probed["files"]] == ["maybe", "absent"]
    shown = json.loads(run("paimon", "show", lake, "--json")[1])
    assert shown["indexes"][0]["indexes"][0]["column"] == "id"


def test_an_encrypted_column_is_refused_until_the_user_insists(tmp_path: Path, run) -> None:
    keyring = tmp_path / "keyring.json"
    keyring.write_text(keyring_json())
    path = write(tmp_path / "x.parquet", customers(50), Mode.ENCRYPTED)
    arguments = ("paimon", "build", path, "--column", "email", "--keyring", keyring)
    code, _, err = run(*arguments)
    assert code == 2
    assert "--allow-clear-index" in err
    assert not Path(f"{path}.index").exists()
    code, out, _ = run(*arguments, "--allow-clear-index")
    assert code == 0
    assert "note: column email: in clear for everyone" in out
    assert KEYRING.has_key("k_pii")


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("build", "--column", "id:size=5"), "size is not an option"),
        (("build", "--column", "id:fpp=2"), "fpp is 2.0"),
        (("build", "--column", "id:items=0"), "items is 0"),
        (("build", "--column", "nobody"), "no column nobody"),
        (("probe", "id = 5", "--type", "BIGINT"), "names no type"),
        (("probe", "id = 5", "--type", "id=ROW<INT>"), "no Bloom filter of the type"),
    ],
)
def test_a_bad_call_is_an_error_in_lines_for_people(
    lake: Path, run, arguments: tuple[str, ...], told: str
) -> None:
    verb, *rest = arguments
    code, _, err = run("paimon", verb, lake, *rest)
    assert code == 2
    assert told in err


def test_an_index_alone_is_probed_with_a_given_type(lake: Path, run) -> None:
    run("paimon", "build", lake, "--column", "id")
    alone = (lake / "0.parquet.index").rename(lake / "data.orc.index")
    assert run("paimon", "probe", alone, "id = 5", "--type", "id=BIGINT")[0] == 0
    assert run("paimon", "probe", alone, "id = 500", "--type", "id=BIGINT")[0] == 1


def test_inspect_shows_the_index_beside_a_file(lake: Path, run) -> None:
    run("paimon", "build", lake / "0.parquet", "--column", "id")
    first, second = json.loads(run("inspect", lake, "--json")[1])["files"]
    assert first["paimon"]["indexes"][0]["column"] == "id"
    assert second["paimon"] is None
    assert "Paimon index:" in run("inspect", lake)[1]
    (lake / "0.parquet.index").write_bytes(b"damaged")
    code, out, _ = run("inspect", lake)
    assert code == 0
    assert "magic" in out


def test_a_name_in_an_index_cannot_write_on_the_terminal(lake: Path, run) -> None:
    from secure_bloom.paimon import FileIndex, Index

    hostile = Index(type="future\x1b[31m", body=b"x")
    index = FileIndex().with_indexes([("na\x1bme", hostile)])
    (lake / "0.parquet.index").write_bytes(index.to_bytes())
    for arguments in (("paimon", "show", lake), ("inspect", lake)):
        assert "\x1b" not in run(*arguments)[1]


@pytest.mark.parametrize("verb", ["show", "build", "probe"])
def test_every_verb_has_help_that_names_its_exit_codes(run, verb: str) -> None:
    code, out, _ = run("paimon", verb, "--help")
    assert code == 0
    assert "Exit code: 0" in out


def test_several_places_are_probed_at_once(lake: Path, run) -> None:
    run("paimon", "build", lake, "--column", "id")
    (lake / "1.parquet").unlink()
    (lake / "1.parquet.index").rename(lake / "1.orc.index")
    places = (lake / "0.parquet", lake / "*.orc.index")
    code, out, _ = run("paimon", "probe", *places, "id = 105", "--type", "id=BIGINT")
    assert (code, "1 of 2 files may have such rows" in out) == (0, True)
    code, _, err = run("paimon", "probe", lake, "id = 105")
    assert code == 2
    assert "--type id=BIGINT" in err


def test_a_damaged_index_is_replaced_when_the_user_says_so(lake: Path, run) -> None:
    (lake / "0.parquet.index").write_bytes(b"damaged")
    code, out, err = run("paimon", "build", lake / "0.parquet", "--column", "id")
    assert (code, out) == (2, "")
    assert "--replace-damaged" in err
    arguments = ("paimon", "build", lake, "--column", "id", "--replace-damaged")
    assert run(*arguments)[0] == 0
    assert run("paimon", "probe", lake, "id = 5")[0] == 0


def _with_bitmap(lake: Path) -> Path:
    """Bitmap indexes of ``k`` and ``j`` in a file where a Bloom filter has ``id`` from 0 to 99."""
    columns = {"k": [1, 2] * 50, "j": [7, None] * 50}
    for path in (lake / "0.parquet", lake / "1.parquet"):
        table = pq.read_table(path)
        for name, values in columns.items():
            table = table.append_column(name, pa.array(values, pa.int32()))
        pq.write_table(table, path)
    paimon.build_index(lake / "0.parquet", {"id": paimon.IndexOptions(fpp=1e-9)})
    built = Path(f"{lake / '0.parquet'}.index")
    index = FileIndex.from_bytes(built.read_bytes())
    bitmaps = [(name, bitmap(values)) for name, values in columns.items()]
    built.write_bytes(index.with_indexes(bitmaps).to_bytes())
    return lake


def test_a_file_of_which_one_index_may_have_the_rows_is_kept(lake: Path, run) -> None:
    path = _with_bitmap(lake) / "0.parquet"
    code, out, _ = run("paimon", "probe", path, "k = 1 or id = 5000")
    assert code == 0
    assert "1 of 1 file may have such rows" in out
    assert "note" not in out
    document = json.loads(run("paimon", "probe", path, "k = 1 or id = 5000", "--json")[1])
    assert document["rules"] == "safe"
    assert (document["files"][0]["verdict"], document["files"][0]["note"]) == ("maybe", None)


def test_a_table_is_built_shown_and_probed(tmp_path: Path, run) -> None:
    pytest.importorskip("pypaimon_rust")
    from testing.paimon_tables import Warehouse

    lake = Warehouse(path=str(tmp_path / "lake"))
    folder = lake.create("id bigint, name string")
    lake.insert([(1, "a"), (90, "b")])
    lake.insert([(2, "c"), (91, "d")])
    lake.sql("alter table t rename column name to title")
    code, out, _ = run("paimon", "build", folder, "--column", "title:items=50", "--column", "id")
    assert code == 0
    assert "snapshot 3: indexes of 2 files" in out
    code, out, _ = run("paimon", "build", f"paimon://{lake.path}/default.t", "--column", "title")
    assert "2 files: its index has these filters already" in out
    code, out, _ = run("paimon", "show", folder)
    assert (code, out.count("bloom-filter")) == (0, 4)
    code, out, _ = run("paimon", "probe", folder, "title = 'a'")
    assert code == 0
    assert "1 of 2 files can be skipped" in out
    assert run("paimon", "probe", folder, "title = 'x'")[0] == 1
    assert run("paimon", "probe", folder, "id = 1", "--json")[0] == 0


def test_a_probe_says_that_rows_of_a_file_are_merged(tmp_path: Path, run) -> None:
    pytest.importorskip("pypaimon_rust")
    from testing.paimon_tables import Warehouse

    lake = Warehouse(path=str(tmp_path / "lake"))
    folder = lake.create("id bigint, v bigint, primary key (id)", bucket="1")
    lake.insert([(1, 10)])
    run("paimon", "build", folder, "--column", "id")
    code, out, _ = run("paimon", "probe", folder, "id = 1")
    assert code == 0
    assert "a newer file may replace them" in out


def test_counts_agree_with_their_nouns(lake: Path, run) -> None:
    assert "1 data file without an index" in run("paimon", "show", lake / "0.parquet")[1]
    assert "1 of 1 file without" in run("paimon", "probe", lake / "0.parquet", "id = 5")[1]


def test_an_unknown_column_is_noted(lake: Path, run) -> None:
    code, out, _ = run("paimon", "probe", lake, "nope = 1")
    assert (code, "note: no file has a column nope" in out) == (3, True)
    assert json.loads(run("paimon", "probe", lake, "nope = 1", "--json")[1])["notes"]


def test_show_takes_a_keyring_and_no_policy(run) -> None:
    assert "[kms]" not in run("paimon", "show", "--help")[1]
    assert "--keyring" in run("paimon", "show", "--help")[1]
