"""Words for what is wrong at a store: the store's own code stands there where it says more."""

from __future__ import annotations

from secure_bloom.storage.os_errors import BUSY, CHANGED, denied, error_of


def test_the_store_s_code_is_told_where_it_says_more() -> None:
    assert "SlowDown" in error_of(BUSY, "p", "SlowDown").message
    assert "PreconditionFailed" not in error_of(CHANGED, "p", "PreconditionFailed").message
    refused = error_of(denied("ask for rights"), "p")
    assert (refused.path, refused.hint) == ("p", "ask for rights")
    assert not refused.message.endswith(": ")
