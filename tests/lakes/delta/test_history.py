"""All files of a Delta log, of whatever version."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from secure_bloom.errors import FormatError
from secure_bloom.lakes.delta.history import actions_in, is_read_as_log, log_paths, texts_of
from testing.delta_logs import add, checkpoint, commit, log_of, protocol


def test_every_form_of_the_log_is_read(tmp_path: Path) -> None:
    commit(tmp_path, 0, add("a"))
    checkpoint(log_of(tmp_path) / "_sidecars" / "s.parquet", add("b"))
    (log_of(tmp_path) / f"{0:020}.crc").write_text(json.dumps({"allFiles": [add("c")["add"]]}))
    pq.write_table(pa.table({"path": ["d"]}), log_of(tmp_path) / "copy.parquet")
    found = [
        action["add"]["path"]
        for path in log_paths(str(tmp_path))
        for action in actions_in(path)
        if "add" in action
    ]
    assert sorted(found) == ["a", "b", "c"]


@pytest.mark.parametrize("name", [f"{0:020}.json", f"{0:020}.crc", "x.parquet"])
def test_damage_is_an_error_with_the_path(tmp_path: Path, name: str) -> None:
    commit(tmp_path, 1, protocol())
    (log_of(tmp_path) / name).write_text("{secret")
    with pytest.raises(FormatError) as caught:
        list(actions_in(str(log_of(tmp_path) / name)))
    assert str(caught.value.path).endswith(name)
    assert "secret" not in str(caught.value)


def test_texts_of_an_operation_and_constraints() -> None:
    info = {"operationParameters": {"predicate": "a = 1", "n": 2}}
    assert dict(texts_of({"commitInfo": info})) == {
        "the operation's predicate": "a = 1",
        "the operation's n": "2",
    }
    assert list(texts_of({"commitInfo": None, "metaData": {"configuration": 3}})) == []


def test_names_that_logs_have() -> None:
    assert is_read_as_log("_last_checkpoint")
    assert not is_read_as_log("copy.parquet.bak")
