"""The functions that call a KMS: what clients may answer, and what they may raise."""

from __future__ import annotations

import base64
from collections.abc import Callable

import pytest

from secure_bloom.encryption.kms.client import moved_with, rewrap_with, unwrap_with, wrap_with
from secure_bloom.errors import FormatError, KeyUnavailableError, KmsUnavailableError
from testing.tables import KEYRING

KEY = bytes(range(16))


class Foreign:
    """A client of somebody else's; each method does as the test says."""

    def __init__(self, answer: Callable[[], object]) -> None:
        self._answer = answer

    def wrap_key(self, key_bytes: bytes, master_key_identifier: str) -> str:
        return self._answer()  # type: ignore[return-value]

    def unwrap_key(self, wrapped_key: str, master_key_identifier: str) -> bytes:
        return self._answer()  # type: ignore[return-value]


class Rewrapping(Foreign):
    """One that renews wrapped keys itself."""

    def rewrap_key(self, wrapped_key: str, master_key_identifier: str) -> str:
        return self._answer()  # type: ignore[return-value]


def _raising(error: Exception) -> Callable[[], object]:
    def answer() -> object:
        raise error

    return answer


CALLS: list[Callable[[Rewrapping], object]] = [
    lambda kms: wrap_with(kms, KEY, "k_pii"),
    lambda kms: unwrap_with(kms, "wrapped", "k_pii"),
    lambda kms: rewrap_with(kms, "wrapped", "k_pii"),
]


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("kind", [KeyUnavailableError, KmsUnavailableError])
def test_our_own_errors_pass(call: Callable[[Rewrapping], object], kind: type[Exception]) -> None:
    with pytest.raises(kind, match=r"^as it was$"):
        call(Rewrapping(_raising(kind("as it was"))))


@pytest.mark.parametrize("call", CALLS)
def test_of_a_foreign_error_only_the_type_is_told(call: Callable[[Rewrapping], object]) -> None:
    with pytest.raises(KeyUnavailableError, match=r"k_pii.*ValueError") as caught:
        call(Rewrapping(_raising(ValueError("a token"))))
    assert "a token" not in f"{caught.value} {caught.value.hint}"
    assert isinstance(caught.value.__cause__, ValueError)


@pytest.mark.parametrize("call", CALLS)
def test_an_answer_of_another_type_is_named(call: Callable[[Rewrapping], object]) -> None:
    with pytest.raises(KeyUnavailableError, match="returned int for master key 'k_pii', wanted"):
        call(Rewrapping(lambda: 7))


def test_a_wrapped_key_may_be_bytes() -> None:
    assert wrap_with(Foreign(lambda: b"wrapped"), KEY, "k_pii") == "wrapped"


def test_a_client_that_cannot_renew_unwraps_and_wraps() -> None:
    wrapped = KEYRING.wrap_key(KEY, "k_pii")
    renewed = rewrap_with(KEYRING, wrapped, "k_pii")
    assert renewed != wrapped
    assert KEYRING.unwrap_key(renewed, "k_pii") == KEY
    assert rewrap_with(Rewrapping(lambda: "renewed"), wrapped, "k_pii") == "renewed"
    with pytest.raises(FormatError, match="not base64"):
        rewrap_with(Rewrapping(_raising(FormatError("not base64"))), wrapped, "k_pii")


def test_an_unwrapped_key_has_a_size_of_aes() -> None:
    with pytest.raises(KeyUnavailableError, match="15 bytes"):
        unwrap_with(Foreign(lambda: bytes(15)), base64.b64encode(b"x").decode(), "k_pii")


class Moving(Foreign):
    """One that brings wrapped keys under another master key itself."""

    def move_key(self, wrapped_key: str, old_master_key: str, new_master_key: str) -> str:
        return self._answer()  # type: ignore[return-value]


def test_a_kms_that_cannot_move_a_key_gives_it_out_to_be_wrapped_anew() -> None:
    moved = moved_with(KEYRING, wrap_with(KEYRING, KEY, "k_pii"), "k_pii", "k_footer")
    assert unwrap_with(KEYRING, moved, "k_footer") == KEY


def test_a_kms_moves_a_key_itself_where_it_can() -> None:
    assert moved_with(Moving(lambda: "moved"), "wrapped", "k_old", "k_new") == "moved"


def test_a_move_that_fails_is_of_the_key() -> None:
    with pytest.raises(KeyUnavailableError, match=r"k_old.*ValueError"):
        moved_with(Moving(_raising(ValueError("secret"))), "wrapped", "k_old", "k_new")
    with pytest.raises(KmsUnavailableError, match="down"):
        moved_with(Moving(_raising(KmsUnavailableError("down"))), "wrapped", "k_old", "k_new")
