"""What appends leave in a file: a replace gives the room back, rotation blanks old wrapped keys."""

from __future__ import annotations

from pathlib import Path

import pytest

import secure_bloom as sb
from secure_bloom.adding.in_place import append_mark, find_old_footers, reclaimed_end
from secure_bloom.encryption.policy_tables import ColumnRule
from testing.surgery import filter_of, opened
from testing.tables import KEYRING, Mode, customers, write

COLUMNS = ["email", "iban"]
#: Of a row of the last row group.
EMAIL = str(customers(300)["email"][250]).encode()
MODES = pytest.mark.parametrize("mode", [Mode.PLAIN, Mode.SIGNED, Mode.ENCRYPTED])


def add(path: Path, columns: list[str] = COLUMNS, **options: bool) -> sb.AddReport:
    report = sb.add_bloom_filters(path, columns=columns, keys=KEYRING, **options)  # type: ignore[arg-type]
    assert not report.failed
    return report


@MODES
def test_a_plain_replace_gives_back_what_appends_have_left(tmp_path: Path, mode: Mode) -> None:
    path, once = (write(tmp_path / name, customers(300), mode, row_group_size=100) for name in "xy")
    add(once)
    for _ in range(3):
        report = add(path, in_place=True, replace_filters=True)
    assert "1 file grew by" in report.notes[0]
    assert path.stat().st_size > once.stat().st_size + 2 * 4096
    assert not add(path, replace_filters=True).notes
    assert path.stat().st_size == once.stat().st_size
    assert sb.read_table(path, keys=KEYRING).equals(customers(300))


@MODES
def test_filters_that_stay_and_all_before_them_stay(tmp_path: Path, mode: Mode) -> None:
    path = write(tmp_path / "x", customers(300), mode, row_group_size=100)
    add(path, ["iban"], in_place=True)
    add(path, ["email"], in_place=True)
    kept, size = filter_of(path, 2, "iban"), path.stat().st_size
    add(path, ["email"], replace_filters=True)
    assert path.stat().st_size < size
    assert filter_of(path, 2, "iban") == kept
    assert filter_of(path, 2, "email").check(EMAIL)
    assert sb.read_table(path, keys=KEYRING).equals(customers(300))


def test_a_mark_without_a_footer_before_it_is_none(tmp_path: Path) -> None:
    path = write(tmp_path / "x", customers(5), Mode.PLAIN)
    content = path.read_bytes()
    with opened(path, None) as it:
        footer = it.footer.tail.offset
    before = content[:footer] + b"no footer"
    path.write_bytes(before + append_mark(len(before)) + content[footer:])
    with opened(path, None) as it:
        assert find_old_footers(it.file, it.footer) == []


def test_no_room_is_given_back_while_the_key_of_any_column_is_missing(tmp_path: Path) -> None:
    path = write(tmp_path / "x", customers(300), Mode.ENCRYPTED, row_group_size=100)
    add(path, ["id"], in_place=True)
    add(path, ["id"], in_place=True, replace_filters=True)
    few = sb.Keyring(master_keys={k: v for k, v in KEYRING.master_keys.items() if k != "k_pii"})
    with opened(path, few) as it:
        footer = it.footer.tail.offset
        assert find_old_footers(it.file, it.footer) != []
        assert reclaimed_end(it.file, it.footer.read, {}) == footer
    with opened(path) as it:
        assert reclaimed_end(it.file, it.footer.read, {}) < footer


def test_a_file_in_a_cell_is_not_taken_for_an_append(tmp_path: Path) -> None:
    inner = write(tmp_path / "inner", customers(5), Mode.PLAIN)
    add(inner, in_place=True)
    table = customers(1).set_column(0, "cell", [[inner.read_bytes()]])
    path = write(tmp_path / "x", table, Mode.PLAIN, compression="none")
    with opened(path, None) as it:
        assert find_old_footers(it.file, it.footer) == []


@pytest.mark.parametrize("mode", [Mode.SIGNED, Mode.ENCRYPTED])
def test_rotation_blanks_footers_that_hold_old_wrapped_keys(tmp_path: Path, mode: Mode) -> None:
    path = write(tmp_path / "x", customers(300), mode, row_group_size=100)
    add(path, in_place=True)
    add(path, ["city"], in_place=True)
    with opened(path, KEYRING) as it:
        assert len(find_old_footers(it.file, it.footer)) == 2
    policy = sb.KeyPolicy(
        footer_key="k_footer", columns={"email": ColumnRule(path="email", key="k_pii")}
    )
    moves = {"k_footer": "k_new", "k_pii": "k_new"}
    keys = sb.Keyring(master_keys={**KEYRING.master_keys, "k_new": bytes(16)})
    assert not sb.rotate_keys(path, policy=policy, moves=moves, keys=keys).failed
    # Whoever has the old master keys finds nothing in the file that they open.
    content = path.read_bytes()
    assert b"k_new" in content
    assert not any(name in content for name in (b"k_footer", b"k_pii"))
    with opened(path, keys) as it:
        assert find_old_footers(it.file, it.footer) == []
    assert sb.read_table(path, keys=keys).equals(customers(300))
    assert filter_of(path, 2, "email", keys).check(EMAIL)
    # A later append that is killed is mended all the same.
    before = path.read_bytes()
    sb.add_bloom_filters(path, columns=["score"], keys=keys, in_place=True)
    path.write_bytes(path.read_bytes()[:-20])
    report = sb.add_bloom_filters(path, columns=["email"], keys=keys, in_place=True)
    assert not report.failed
    assert path.read_bytes() == before
