"""What runs over files refuse, tell and leave behind."""

from __future__ import annotations

import shutil
from pathlib import Path

import pyarrow.parquet as pq
import pytest

import secure_bloom as sb
from testing.tables import customers
from tests.rekeying.lake import KEYS, policy, rows


@pytest.mark.parametrize("log", ["_delta_log", ".hoodie", "_spark_metadata", "metadata"])
def test_a_table_with_a_log_of_its_own_is_refused(file: Path, signed: Path, log: str) -> None:
    (file.parent / log).mkdir()
    (file.parent / log / "v1.metadata.json").write_text("{}")
    before = file.read_bytes()
    for verb in (
        lambda: sb.reencrypt(file, policy=signed, keys=KEYS),
        lambda: sb.rotate_keys(file.parent, policy=signed, keys=KEYS),
        lambda: sb.decrypt(file, output=file.parent / "out", keys=KEYS),
        lambda: sb.keys_used(file, keys=KEYS),
    ):
        with pytest.raises(sb.SecureBloomError, match=r"its own log|the table.s log"):
            verb()
    assert file.read_bytes() == before


def test_processes_do_what_one_does(file: Path, signed: Path, tmp_path: Path) -> None:
    for name in "abc":
        shutil.copyfile(file, file.parent / f"{name}.parquet")
    (file.parent / "torn.parquet").write_bytes(b"PAR1")
    seen = list[tuple[int, int]]()
    report = sb.reencrypt(
        file.parent, policy=signed, keys=KEYS, jobs=2, progress=lambda *step: seen.append(step)
    )
    names = [f"{name}.parquet" for name in ("a", "b", "c", "torn", "x")]
    assert [Path(it.path).name for it in report.files] == names
    assert [it.status == "failed" for it in report.files] == [name[0] == "t" for name in names]
    assert seen == [(done + 1, 5) for done in range(5)]
    moved = sb.rotate_keys(file.parent, policy=signed, keys=KEYS, moves={"k_pii": "k_new"}, jobs=2)
    assert [it.status for it in moved.files] == ["rotated"] * 3 + ["failed", "rotated"]
    clear = tmp_path / "clear"
    assert len(sb.decrypt(file.parent, output=clear, keys=KEYS, jobs=2).failed) == 1
    for name in set(names) - {"torn.parquet"}:
        assert pq.read_table(clear / name).equals(customers(50))


def test_summary_files_of_changed_files_are_told(tmp_path: Path, signed: Path) -> None:
    collected: list[pq.FileMetaData] = []
    (tmp_path / "t").mkdir()
    pq.write_table(customers(5), tmp_path / "t" / "x.parquet", metadata_collector=collected)
    collected[0].set_file_path("x.parquet")
    collected[0].write_metadata_file(tmp_path / "t" / "_metadata")
    report = sb.reencrypt(tmp_path / "t", policy=signed, keys=KEYS)
    assert any("_metadata describes files that have other keys now" in n for n in report.notes)


def test_a_signature_that_cannot_be_checked_is_an_error_unless_allowed(
    file: Path, signed: Path, tmp_path: Path
) -> None:
    sb.reencrypt(file, policy=signed, keys=KEYS)
    partly = sb.Keyring(master_keys={"k_pii": KEYS.master_keys["k_pii"]})
    [failed] = sb.decrypt(file, output=tmp_path / "o", keys=partly).failed
    assert "allow-unverified" in str(failed.hint)
    with pytest.warns(UserWarning, match="signature was not checked"):
        report = sb.decrypt(file, output=tmp_path / "o", keys=partly, allow_unverified=True)
    assert [it.verified for it in report.files] == [False]
    assert pq.read_table(tmp_path / "o" / "x.parquet").num_rows == 50
    # What is sealed anew would pass for genuine.
    signed.write_text(signed.read_text().replace("k_footer", "k_pii"))
    [failed] = sb.reencrypt(file, policy=signed, keys=partly).failed
    assert "k_footer" in str(failed.error)


def test_a_file_that_was_exchanged_for_one_in_clear_is_not_decrypted_unless_allowed(
    file: Path, signed: Path, tmp_path: Path
) -> None:
    [failed] = sb.decrypt(file, output=tmp_path / "o", policy=signed, keys=KEYS).failed
    assert "the policy says a plaintext footer, signed" in str(failed.error)
    assert not (tmp_path / "o").exists()
    allowed = sb.decrypt(
        file, output=tmp_path / "o", policy=signed, keys=KEYS, allow_unprotected=True
    )
    assert not allowed.failed


def test_progress_counts_files(tmp_path: Path, signed: Path) -> None:
    (tmp_path / "t").mkdir()
    for name in "abc":
        pq.write_table(rows().slice(0, 10), tmp_path / "t" / f"{name}.parquet")
    seen: list[tuple[int, int]] = []
    sb.reencrypt(tmp_path / "t", policy=signed, keys=KEYS, progress=lambda *it: seen.append(it))
    assert seen == [(1, 3), (2, 3), (3, 3)]


def test_an_output_inside_of_the_table_is_refused(tmp_path: Path, signed: Path) -> None:
    lake = tmp_path / "lake"
    lake.mkdir()
    pq.write_table(customers(5), lake / "0.parquet")
    sb.reencrypt(lake, policy=signed, keys=KEYS)
    link = tmp_path / "link"
    link.symlink_to(lake)
    (tmp_path / "other").mkdir()
    for output in (lake / "clear", tmp_path / "other" / ".." / "lake" / "clear", link / "clear"):
        for table in (lake, link):
            with pytest.raises(sb.PolicyError, match="inside the table"):
                sb.decrypt(table, output=output, keys=KEYS)
    assert sb.decrypt(lake, output=tmp_path / "lake2", keys=KEYS).files[0].status == "decrypted"


def test_rotation_says_how_a_file_is_other_than_the_policy(file: Path, tmp_path: Path) -> None:
    (tmp_path / "old.toml").write_text(policy(columns={"email": "k_pii"}))
    sb.reencrypt(file, policy=tmp_path / "old.toml", keys=KEYS)
    cases = {
        "says that the footer is signed, but it is encrypted": policy(
            mode="plaintext", columns={"email": "k_pii"}
        ),
        "column email is in clear, but it is under a key of its own": policy(columns={}),
        "under the footer's key, but it is in clear": policy(
            columns={"email": "k_pii"}, uniform=True
        ),
    }
    for told, text in cases.items():
        (tmp_path / "new.toml").write_text(text)
        [failed] = sb.rotate_keys(file, policy=tmp_path / "new.toml", keys=KEYS).failed
        assert told in str(failed.error)
    (tmp_path / "new.toml").write_text(policy(columns={"emial": "k_pii"}))
    with pytest.raises(sb.PolicyError, match="no column emial"):
        sb.rotate_keys(file, policy=tmp_path / "new.toml", keys=KEYS)
