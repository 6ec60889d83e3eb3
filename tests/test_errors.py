"""Everything that is raised has one root, and says where, what and what to do."""

from __future__ import annotations

import os
import pickle
import traceback
from collections.abc import Callable
from pathlib import Path

import pytest

import secure_bloom
from secure_bloom import errors
from secure_bloom.encryption.kms import Keyring
from testing.tables import KEYRING, MASTER_KEYS, Mode, customers, write
from tests.auditing.examples import data_keys


def test_every_error_has_the_one_root() -> None:
    classes = [
        c
        for c in vars(errors).values()
        if isinstance(c, type) and c.__module__ == errors.__name__ and issubclass(c, Exception)
    ]
    assert len(classes) > 10
    assert all(issubclass(c, secure_bloom.SecureBloomError) for c in classes)


def test_an_error_says_where_what_and_what_to_do() -> None:
    with (
        pytest.raises(errors.FormatError) as caught,
        errors.located(path="f", row_group=0),
        errors.located(row_group=3, column="email"),
    ):
        raise errors.FormatError("is cut short", hint="write it again")
    assert str(caught.value) == "f, row group 3, column email: is cut short"
    assert caught.value.hint == "write it again"


def test_a_traceback_shows_the_hint_once_and_the_one_that_counts() -> None:
    error = errors.FormatError("is cut short", hint="write it again")
    error.add_note("seen by the caller")
    error.hint = "copy it again"
    for copied in (error, pickle.loads(pickle.dumps(error))):
        shown = "".join(traceback.format_exception(copied))
        assert "hint: copy it again" in shown
        assert "hint: write it again" not in shown
        assert "seen by the caller" in shown
        assert copied.hint == "copy it again"
    assert "hint" not in "".join(traceback.format_exception(errors.FormatError("is cut short")))


@pytest.mark.parametrize(
    "call",
    [
        lambda path: secure_bloom.probe(path, "email", "a"),
        secure_bloom.inspect,
        secure_bloom.read_table,
        lambda path: secure_bloom.add_bloom_filters(path, columns="email"),
        secure_bloom.KeyPolicy.load,
        secure_bloom.Keyring.load,
    ],
)
def test_a_missing_path_is_a_file_not_found_error(
    call: Callable[[Path], object], tmp_path: Path
) -> None:
    with pytest.raises(FileNotFoundError) as caught:
        call(tmp_path / "nothing.parquet")
    assert isinstance(caught.value, secure_bloom.PolicyError)
    assert str(tmp_path / "nothing.parquet") in str(caught.value)


def test_what_may_not_be_read_is_a_permission_error(tmp_path: Path) -> None:
    if os.geteuid() == 0:
        pytest.skip("root may read everything")
    (tmp_path / "x.parquet").write_bytes(b"PAR1")
    (tmp_path / "x.parquet").chmod(0)
    with pytest.raises(PermissionError):
        secure_bloom.read_table(tmp_path / "x.parquet")


def test_errors_of_the_system_become_ours_that_are_also_pythons(tmp_path: Path) -> None:
    refused = errors.refused_by_system(PermissionError(13, "denied"), "the system refuses")
    assert isinstance(refused, PermissionError | errors.PolicyError)
    assert not isinstance(
        errors.refused_by_system(OSError(28, "full"), "the system refuses"), PermissionError
    )


def _shown(error: BaseException) -> str:
    """The error as tools that report errors show it: with the variables of every frame."""
    assert error.__traceback__ is not None
    # But for the first frame, which is that of the test.
    error = error.with_traceback(error.__traceback__.tb_next)
    told = traceback.TracebackException.from_exception(error, capture_locals=True)
    return "".join(told.format())


@pytest.mark.parametrize("mode", [Mode.ENCRYPTED, Mode.SIGNED])
def test_reported_variables_hold_no_key(tmp_path: Path, mode: Mode) -> None:
    path = write(tmp_path / "x.parquet", customers(30), mode)
    footer, columns = data_keys(path)
    secrets = [repr(key) for key in (footer, *columns.values(), *MASTER_KEYS.values())]
    sound = path.read_bytes()
    others = Keyring(master_keys={**MASTER_KEYS, "k_pii": b"z" * 24})
    cases = [(others, len(sound))]
    cases += [(KEYRING, place) for place in (len(sound) - 100, len(sound) - 12, 40)]
    for keys, place in cases:
        altered = bytearray(sound + b"\0")
        altered[place] ^= 1
        path.write_bytes(altered[:-1])
        with pytest.raises(errors.SecureBloomError) as caught:
            secure_bloom.read_table(path, keys=keys)
        told = _shown(caught.value)
        assert not [secret for secret in [*secrets, repr(b"z" * 24)] if secret in told]
