"""Files that readers of a table skip, and what cannot be looked at."""

from __future__ import annotations

import gzip
import os
import zipfile
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

import secure_bloom as sb
from testing.tables import KEYRING, Mode, customers, write


def _under_finance(folder: Path, name: str) -> Path:
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    return write(folder / name, customers(30), Mode.SIGNED)


def _without_material(folder: Path) -> None:
    policy = folder / "p.toml"
    policy.write_text('[footer]\nkey = "k_footer"\n[encryption]\nkey_material = "external"\n')
    file = write(folder / "lost.parquet", customers(30))
    assert not sb.reencrypt(file, policy=policy, keys=KEYRING).failed
    (material,) = folder.glob("_KEY_MATERIAL_FOR_*")
    material.unlink()


def _zipped(folder: Path) -> None:
    file = _under_finance(folder, "x.parquet")
    with zipfile.ZipFile(folder / "old.zip", "w") as archive:
        archive.write(file)
    file.unlink()


def _packed(folder: Path) -> None:
    file = _under_finance(folder, "x.parquet")
    (folder / "old.gz").write_bytes(gzip.compress(file.read_bytes()))
    file.unlink()


def _cut_short(folder: Path) -> None:
    file = _under_finance(folder, "_x.parquet")
    file.write_bytes(file.read_bytes()[:-40])


#: What cannot be looked at, and the beginning of the reason.
UNKNOWN: dict[str, tuple[Callable[[Path], object], str]] = {
    "closed footer": (
        lambda it: write(it / "x.parquet", customers(30), Mode.ENCRYPTED),
        "the footer could not be opened",
    ),
    "lost key material": (_without_material, ""),
    "damaged": (lambda it: (it / "x.parquet").write_bytes(b"PAR1" * 5), ""),
    "damaged, skipped": (lambda it: (it / "_x").write_bytes(b"PAR1" * 5), ""),
    "cut short, skipped": (_cut_short, "the file begins as a Parquet file, and has no footer"),
    "archive": (_zipped, "an archive"),
    "packed": (_packed, "a packed copy (gzip)"),
    "link to nothing": (
        lambda it: (it / "_old").symlink_to(it / "gone"),
        "is a link to a file that is not there",
    ),
    "pipe": (lambda it: os.mkfifo(it / "_pipe"), ""),
}


@pytest.mark.parametrize("kind", UNKNOWN)
def test_a_key_is_not_unused_while_something_is_not_known(tmp_path: Path, kind: str) -> None:
    """Somebody destroys a key by this answer."""
    write(tmp_path / "plain.parquet", customers(30))
    make, reason = UNKNOWN[kind]
    make(tmp_path)
    document = sb.keys_used(tmp_path, only=["k_finance"]).to_dict()
    assert document["unused"] == []
    (unknown,) = document["incomplete"]
    assert unknown["reason"].startswith(reason)
    assert unknown["reason"]


@pytest.mark.parametrize("name", ["x.parquet.bak", "_old/x.parquet", ".hidden/x", "part.crc"])
def test_a_copy_that_readers_skip_depends_on_its_keys(tmp_path: Path, name: str) -> None:
    write(tmp_path / "plain.parquet", customers(30))
    (tmp_path / "_SUCCESS").write_text("")
    (tmp_path / "notes.gz").write_bytes(gzip.compress(b"PAR is no mark"))
    copy = _under_finance(tmp_path, name)
    report = sb.keys_used(tmp_path, only=["k_finance"])
    assert [it.path for it in report.skipped] == [str(copy)]
    assert report.files == ()
    assert (report.unused, report.incomplete) == ((), ())
    copy.unlink()
    assert sb.keys_used(tmp_path, only=["k_finance"]).unused == ("k_finance",)


def test_an_old_file_of_a_table_depends_on_its_keys(tmp_path: Path) -> None:
    deltalake = pytest.importorskip("deltalake")
    deltalake.write_deltalake(tmp_path / "t", pa.table({"id": [1]}))
    _under_finance(tmp_path / "t", "removed.parquet")
    report = sb.keys_used(tmp_path / "t", only=["k_finance"])
    assert [Path(it.path).name for it in report.skipped] == ["removed.parquet"]
    # One version was asked for.
    report = sb.keys_used(tmp_path / "t", only=["k_finance"], version=0)
    assert (report.skipped, report.unused, report.live_only) == ((), ("k_finance",), True)
