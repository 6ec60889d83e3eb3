"""What stands in a file, with keys and without."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import secure_bloom as sb
from secure_bloom.encryption.kms import Keyring
from secure_bloom.inspecting.files import ColumnInspection, FileInspection
from testing.surgery import assert_tells_no_secret, filter_of, filter_place, flip
from testing.tables import KEYRING, MASTER_KEYS, Mode, customers, keyring_json, write

FOOTERS = {
    Mode.PLAIN: ("plaintext", None, None),
    Mode.SIGNED: ("signed", "AES_GCM_V1", "k_footer"),
    Mode.ENCRYPTED: ("encrypted", "AES_GCM_V1", "k_footer"),
    Mode.UNIFORM: ("encrypted", "AES_GCM_V1", "k_footer"),
}
OWN_KEYS = {"email": ("column_key", "k_pii"), "iban": ("column_key", "k_finance")}
MODES = pytest.mark.parametrize("mode", Mode, ids=lambda mode: mode.name)


def _filtered(folder: Path, mode: Mode, **options: object) -> Path:
    path = write(folder / "x.parquet", customers(40), mode, row_group_size=20, **options)
    sb.add_bloom_filters(path, columns=["email", "id"], keys=KEYRING)
    return path


def _inspect(path: Path, keys: Keyring | None) -> FileInspection:
    (file,) = sb.inspect(path, keys=keys).files
    return file


def _columns(file: FileInspection, row_group: int = 0) -> dict[str, ColumnInspection]:
    return {column.column: column for column in file.row_groups[row_group].columns}


@MODES
def test_with_keys_everything_shows(tmp_path: Path, mode: Mode) -> None:
    path = _filtered(tmp_path, mode)
    file = _inspect(path, KEYRING)
    assert (file.footer, file.algorithm, file.key) == FOOTERS[mode]
    assert (file.rows, [group.rows for group in file.row_groups]) == (40, [20, 20])
    assert (file.note, file.error) == (None, None)
    for name, column in _columns(file, 1).items():
        wanted = {Mode.PLAIN: ("no", None), Mode.UNIFORM: ("footer_key", "k_footer")}.get(
            mode, OWN_KEYS.get(name, ("no", None))
        )
        assert (column.encrypted, column.key, column.note) == (*wanted, None)
        if name not in ("email", "id"):
            assert column.bloom is None
            continue
        place, stored = filter_place(path, 1, name), filter_of(path, 1, name)
        assert column.bloom is not None
        assert (column.bloom.offset, column.bloom.length) == (place.start, place.stop - place.start)
        assert (column.bloom.bytes, column.bloom.fpp, column.bloom.fill) == (
            stored.byte_count,
            stored.fpp(),
            stored.fill(),
        )


def test_types_are_told_as_a_person_names_them(tmp_path: Path) -> None:
    types = {
        name: c.type
        for name, c in _columns(_inspect(_filtered(tmp_path, Mode.PLAIN), None)).items()
    }
    assert types["email"] == "BYTE_ARRAY text"
    assert (types["id"], types["score"]) == ("INT64", "DOUBLE")


@pytest.mark.parametrize("mode", [Mode.ENCRYPTED, Mode.UNIFORM], ids=lambda mode: mode.name)
def test_without_keys_an_encrypted_footer_shows_how_it_is_encrypted(
    tmp_path: Path, mode: Mode
) -> None:
    file = _inspect(_filtered(tmp_path, mode), None)
    assert (file.footer, file.algorithm, file.key) == FOOTERS[mode]
    assert (file.rows, file.row_groups, file.error) == (None, (), None)
    assert "k_footer" in str(file.note)


def test_without_keys_a_signed_footer_shows_all_but_sealed_filters(tmp_path: Path) -> None:
    path = _filtered(tmp_path, Mode.SIGNED)
    file = _inspect(path, None)
    assert file.footer == "signed"
    assert "not checked" in str(file.note)
    assert file.rows == 40
    email, number = _columns(file)["email"], _columns(file)["id"]
    place = filter_place(path, 0, "email")
    assert email.bloom is not None
    assert (email.bloom.offset, email.bloom.fpp) == (place.start, None)
    assert (email.encrypted, email.key) == ("column_key", "k_pii")
    assert "k_pii" in str(email.note)
    assert number.bloom is not None
    assert number.bloom.fpp is not None


def test_with_some_keys_the_rest_has_a_note(tmp_path: Path) -> None:
    keys = Keyring(master_keys={"k_footer": MASTER_KEYS["k_footer"]})
    file = _inspect(_filtered(tmp_path, Mode.ENCRYPTED), keys)
    columns = _columns(file)
    assert file.rows == 40
    assert (columns["email"].key, columns["email"].bloom) == ("k_pii", None)
    assert "k_pii" in str(columns["email"].note)
    assert columns["id"].bloom is not None
    assert columns["id"].note is None


def test_a_filter_that_does_not_authenticate_has_a_note(tmp_path: Path) -> None:
    path = _filtered(tmp_path, Mode.ENCRYPTED)
    flip(path, filter_place(path, 0, "email").stop - 1)
    file = _inspect(path, KEYRING)
    assert "authenticate" in str(_columns(file)["email"].note)
    assert _columns(file, 1)["email"].note is None


def test_a_footer_that_does_not_authenticate_is_an_error(tmp_path: Path) -> None:
    path = _filtered(tmp_path, Mode.ENCRYPTED)
    flip(path, path.stat().st_size - 30)
    file = _inspect(path, KEYRING)
    assert str(file.error).startswith(f"{path}: ")
    assert "authenticate" in str(file.error)


@pytest.mark.parametrize("content", [b"", b"no Parquet file", b"PAR1" * 20])
def test_a_broken_file_stops_no_other(tmp_path: Path, content: bytes) -> None:
    _filtered(tmp_path, Mode.PLAIN)
    (tmp_path / "broken.parquet").write_bytes(content)
    broken, whole = sb.inspect(tmp_path).files
    assert "broken.parquet" in str(broken.error)
    assert whole.rows == 40


def test_the_algorithm_with_ctr_is_told(tmp_path: Path) -> None:
    encryption = {"encryption_algorithm": "AES_GCM_CTR_V1"}
    path = _filtered(tmp_path, Mode.ENCRYPTED, encryption=encryption)
    assert _inspect(path, None).algorithm == "AES_GCM_CTR_V1"


@MODES
@pytest.mark.parametrize("keys", [KEYRING, None], ids=["keys", "no keys"])
def test_the_report_is_json_without_secrets(
    tmp_path: Path, mode: Mode, keys: Keyring | None
) -> None:
    document = json.dumps(sb.inspect(_filtered(tmp_path, mode), keys=keys).to_dict())
    assert json.loads(document)["files"][0]["footer"] == FOOTERS[mode][0]
    assert_tells_no_secret(document)


@pytest.mark.parametrize("wrong", [False, True])
def test_a_check_finds_the_filter_that_misses_values(tmp_path: Path, wrong: bool) -> None:
    path = write(tmp_path / "x.parquet", customers(60), row_group_size=60)
    sb.add_bloom_filters(path, columns=["email", "score"])
    if wrong:
        place = filter_place(path, 0, "email")
        content = bytearray(path.read_bytes())
        content[place.stop - 32 : place.stop] = bytes(32)
        path.write_bytes(content)
    report = sb.inspect(path, check=True)
    found = {c.column: c.bloom and c.bloom.missed for c in report.files[0].row_groups[0].columns}
    assert bool(found["email"]) is wrong
    assert found["score"] == 0
    assert [column.column for _, _, column in report.wrong] == (["email"] if wrong else [])


def test_the_keys_are_those_of_the_policys_kms(tmp_path: Path) -> None:
    path = _filtered(tmp_path, Mode.ENCRYPTED)
    (tmp_path / "keyring.json").write_text(keyring_json())
    policy = tmp_path / "policy.toml"
    policy.write_text('[kms]\nclient = "keyring"\nkeyring = "keyring.json"\n')
    assert sb.inspect(path, policy=policy) == sb.inspect(path, keys=KEYRING)
