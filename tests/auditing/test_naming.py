"""Names of keys that an audit may show."""

from __future__ import annotations

import json
from pathlib import Path

from tests.auditing.examples import (
    Example,
    set_key_metadata,
    sound,
)


def test_a_key_that_would_drive_a_terminal_is_not_named(tmp_path: Path) -> None:
    path = sound(tmp_path)
    name = json.dumps("\x1b[2J").encode()
    set_key_metadata(path, "email", lambda metadata: metadata.replace(b'"k_pii"', name))
    (finding,) = Example(path=path).audit().findings
    assert finding.id == "key-material-damaged"
    assert finding.message.isprintable()
