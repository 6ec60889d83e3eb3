"""Keys that a caller brings are checked where they are given, and never shown."""

from __future__ import annotations

from typing import Any

import pytest

from secure_bloom.encryption.kms import ExplicitKeys
from secure_bloom.errors import PolicyError

KEY = b"0123456789012345"


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ({"footer": b"short"}, "the explicit footer key"),
        ({"columns": {"email": b"short"}}, "explicit key of column 'email'"),
        ({"data_keys": {"kf": b"short"}}, "data key 'kf'"),
        ({"footer": KEY.decode()}, "the explicit footer key is of type str"),
    ],
)
def test_a_key_that_aes_does_not_take_is_named(given: dict[str, Any], named: str) -> None:
    with pytest.raises(PolicyError, match=named) as caught:
        ExplicitKeys(**given)
    assert "short" not in str(caught.value)
    assert KEY.decode() not in str(caught.value)


def test_no_key_shows() -> None:
    keys = ExplicitKeys(footer=KEY, columns={"email": KEY}, data_keys={"kf": KEY})
    assert KEY.decode() not in repr(keys)
