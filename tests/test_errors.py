"""Everything that is raised has one root, and says where, what and what to do."""

from __future__ import annotations

import pytest

import secure_bloom
from secure_bloom import errors


def test_every_error_has_the_one_root() -> None:
    classes = [
        c
        for c in vars(errors).values()
        if isinstance(c, type) and c.__module__ == errors.__name__ and issubclass(c, BaseException)
    ]
    assert len(classes) == 11
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
