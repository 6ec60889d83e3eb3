"""Hints of failed files are commands that run, with the arguments of the verb."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable
from pathlib import Path

import deltalake
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import secure_bloom as sb
from secure_bloom.adding.report import AddReport, FileAddReport
from secure_bloom.cli import main
from secure_bloom.cli.runnable_hints import with_runnable_hints
from secure_bloom.encryption.trust import REENCRYPT


def test_paths_and_files_are_words_of_a_shell(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"email": ["x"]}), path)
    failed = FileAddReport(path=str(path), status="failed", error="x", hint=f"{REENCRYPT} does it")
    policy = sb.KeyPolicy.load("keys/policy.toml")
    place = tmp_path / "my policy.toml"
    keyring = Path("keys/dev-keyring.json")
    report = with_runnable_hints(AddReport(files=(failed,)), ["a b"], policy, place, keyring)
    assert report.files[0].hint == (
        f"secure-bloom reencrypt 'a b' --policy '{place}' --keyring keys/dev-keyring.json "
        "--allow-missing-columns does it; new keys come from the policy's [kms]"
    )
    # A policy that was made in Python has no file to name.
    same = with_runnable_hints(AddReport(files=(failed,)), ["a b"], policy, None, None)
    assert same.files[0].hint == failed.hint


#: Lines of a policy whose rotation has begun -> the command that brings the files over.
ROTATIONS = {
    "[keys.old]\n": "rotate lake --policy p.toml",
    "[keys.old]\nretired = true\n": "rotate lake --policy p.toml",
    # Whose key it is, nobody says: it may be known to others.
    "": "reencrypt lake --policy p.toml",
    # `rotate` refuses a file that lacks a column.
    '[columns.zip]\nkey = "new"\n[keys.old]\n': (
        "reencrypt lake --policy p.toml --allow-missing-columns"
    ),
}


@pytest.mark.parametrize("more", ROTATIONS, ids=["older", "retired", "unknown", "a column less"])
@pytest.mark.parametrize("column", ["email", "footer"])
def test_in_the_middle_of_a_rotation_the_hints_name_rotate(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    more: str,
    column: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    run = _runner(capsys)
    kms = '[kms]\nclient = "keyring"\nkeyring = "k.json"\n'
    rules = {
        "email": '[footer]\nkey = "foot"\n[columns.email]\nkey = "old"\nbloom = true\n',
        "footer": '[footer]\nkey = "old"\nuniform = true\n[columns.email]\nbloom = true\n',
    }
    old, new = Path("old.toml"), Path("p.toml")
    old.write_text(kms + rules[column])
    run("keys", "new", "k.json", "old", "new", "foot")
    rows = pa.table({"email": ["a", "b"]})
    encryption = sb.pyarrow_encryption(old, rows.schema).encryption_properties()
    Path("lake").mkdir()
    pq.write_table(rows, "lake/0.parquet", encryption_properties=encryption)
    new.write_text(old.read_text().replace('key = "old"', 'key = "new"') + more)
    command = ROTATIONS[more]
    code, shown = run("add", "lake", "--policy", "p.toml")
    (hint,) = re.findall("hint: secure-bloom (.*) brings files under the policy", shown)
    assert (code, hint) == (2, command)
    fixes = run("audit", "lake", "--policy", "p.toml")[1]
    assert f"    secure-bloom {command}\n" in fixes
    assert run(*shlex.split(command))[0] == 0
    assert run("add", "lake", "--policy", "p.toml")[0] == 0
    assert sb.read_table("lake", policy="p.toml").equals(rows)


def _runner(capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str]]:
    def run(*words: str) -> tuple[int, str]:
        with pytest.raises(SystemExit) as ended:
            main(list(words))
        shown = capsys.readouterr()
        return int(str(ended.value.code or 0)), shown.out + shown.err

    return run


@pytest.mark.parametrize(
    ("command", "wanted"),
    [
        ("add lake --column email --in-place", 2),
        ("reencrypt lake --policy p.toml", 2),
        # A table is written by a commit alone.
        ("reencrypt -o out lake --policy p.toml", 3),
        ("decrypt --output=out lake", 4),
        ("decrypt lake -oout", 4),
    ],
)
def test_a_lake_with_tables_gets_a_command_for_each(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    command: str,
    wanted: int,
) -> None:
    monkeypatch.chdir(tmp_path)
    run, rows = _runner(capsys), pa.table({"email": ["a", "b"]})
    for folder in ("lake/my plain", "lake/sub/a", "lake/hudi/.hoodie", "lake/sub/empty"):
        Path(folder).mkdir(parents=True)
    for name in ("one", "my plain/0", "sub/a/0", "hudi/0"):
        pq.write_table(rows, f"lake/{name}.parquet")
    deltalake.write_deltalake("lake/sub/b", rows)
    Path("p.toml").write_text(
        '[kms]\nclient = "keyring"\nkeyring = "k.json"\n[footer]\nkey = "f"\n'
        '[columns.email]\nkey = "k"\n'
    )
    run("keys", "new", "k.json", "--policy", "p.toml")
    _, said = run(*shlex.split(command))
    hints = [line.partition("hint: ")[2] for line in said.splitlines() if "hint: " in line]
    printed = [line for line in hints if line.startswith("secure-bloom ")]
    assert len(printed) == wanted
    for line in printed:
        code, said = run(*shlex.split(line)[1:])
        assert code == 0, said
    assert any("lake/hudi: no command of secure-bloom" in line for line in hints)
    if "decrypt" in command:
        assert {str(it.parent) for it in Path("out").rglob("*.parquet")} == {
            "out",
            "out/my plain",
            "out/sub/a",
            "out/sub/b",
        }
