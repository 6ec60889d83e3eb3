"""What it means that a text does not show a key."""

from __future__ import annotations

import base64


def assert_hidden(key: bytes, shown: str) -> None:
    for form in (repr(key)[2:-1], key.hex(), base64.b64encode(key).decode()):
        assert form not in shown
