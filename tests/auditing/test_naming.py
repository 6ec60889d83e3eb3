"""Names of keys that an audit may show."""

from __future__ import annotations

import json
from pathlib import Path

from secure_bloom.auditing.naming import plain_name
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


def test_spellings_are_one_name_and_names_of_marks_alone_are_not() -> None:
    assert plain_name(["E_Mail"]) == plain_name(["email"])
    assert plain_name(["address", "e-mail"]) != plain_name(["email"])
    assert plain_name(["\N{OLD KEY}"]) != plain_name(["\N{LOCK}"])
