"""Key material beside a file: read when it is referred to, refused when it is none."""

from __future__ import annotations

from pathlib import Path

import pytest

from secure_bloom.errors import FormatError, KeyUnavailableError
from secure_bloom.parquet.key_material_files import key_material_name, read_material
from secure_bloom.storage import open_input

NAME = "_KEY_MATERIAL_FOR_x.parquet.json"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    (tmp_path / "x.parquet").write_bytes(b"PAR1")
    return tmp_path / "x.parquet"


def test_the_name_is_that_of_parquet_java() -> None:
    assert key_material_name("x.parquet") == NAME


def test_material_is_a_text_for_each_reference(file: Path) -> None:
    file.with_name(NAME).write_text('{"footerKey": "{}", "columnKey0": "{}"}')
    with open_input(str(file)) as opened:
        assert read_material(opened) == {"footerKey": "{}", "columnKey0": "{}"}


def test_material_that_is_gone_is_named(file: Path) -> None:
    with open_input(str(file)) as opened, pytest.raises(KeyUnavailableError, match=NAME) as caught:
        read_material(opened)
    assert "moved or renamed" in str(caught.value.hint)


@pytest.mark.parametrize("content", ["", "[]", '{"footerKey": {}}', "{", "[" * 100_000])
def test_what_is_no_material_is_refused(file: Path, content: str) -> None:
    file.with_name(NAME).write_text(content)
    with open_input(str(file)) as opened, pytest.raises(FormatError, match="not a JSON object"):
        read_material(opened)
