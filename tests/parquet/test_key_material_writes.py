"""Key material beside a file that is written over another one: it opens what stands there."""

from __future__ import annotations

import json
from pathlib import Path
from unittest import mock

import pytest

import secure_bloom as sb
from secure_bloom.errors import PolicyError, UnfinishedWriteError, UnsupportedFeatureError
from secure_bloom.parquet.key_material_files import key_material_name
from secure_bloom.parquet.key_material_writes import replace_with_material
from secure_bloom.storage import open_input
from secure_bloom.storage.staged_file import StagedFile
from testing.tables import customers, write

OLD, NEW = {"old": "1"}, {"new": "2"}


@pytest.fixture
def target(tmp_path: Path) -> Path:
    path = tmp_path / "x.parquet"
    write(tmp_path / "source.parquet", customers(2))
    write(path, customers(1))
    _material(path).write_text(json.dumps(OLD))
    return path


def _material(path: Path) -> Path:
    return path.with_name(key_material_name(path.name))


def _told(path: Path) -> dict[str, str]:
    return dict(json.loads(_material(path).read_text()))


def _write(target: Path, new: dict[str, str], error: Exception | None = None) -> tuple[str, ...]:
    """Write over the target, or fail there; both materials are there while the data is written."""
    publish = StagedFile.publish

    def watched(staged: StagedFile, *over: tuple[object, ...] | None) -> None:
        if staged.name == target.name:
            assert _told(target) == {**OLD, **new}
            if error is not None:
                raise error
        publish(staged, *over)

    with (
        open_input(str(target.with_name("source.parquet"))) as source,
        mock.patch.object(StagedFile, "publish", watched),
    ):
        return replace_with_material(source, source.size, (), new, output=str(target))[1]


def test_old_and_new_material_stand_together_until_the_data_is_replaced(target: Path) -> None:
    assert _write(target, NEW) == ()
    assert _told(target) == NEW


def test_material_goes_with_data_that_needs_none(target: Path) -> None:
    assert _write(target, {}) == ()
    assert not _material(target).exists()


def test_old_material_alone_is_left_when_the_data_cannot_be_written(target: Path) -> None:
    with pytest.raises(PolicyError):
        _write(target, NEW, PolicyError("no space"))
    assert _told(target) == OLD


def test_both_stay_when_nobody_knows_which_data_is_there(target: Path) -> None:
    with pytest.raises(UnfinishedWriteError):
        _write(target, NEW, UnfinishedWriteError("perhaps"))
    assert _told(target) == {**OLD, **NEW}


def test_one_name_for_two_keys_is_refused_before_anything_is_written(target: Path) -> None:
    with pytest.raises(UnsupportedFeatureError, match="by the same names") as caught:
        _write(target, {"old": "another"})
    assert "remove that file" in str(caught.value.hint)
    assert _told(target) == OLD
    assert sb.read_table(target).num_rows == 1


def test_the_same_material_again_is_no_conflict(target: Path) -> None:
    assert _write(target, OLD) == ()
    assert _told(target) == OLD
