"""The start of a data engineer, typed as written, in the session that these tests share."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.pages import Session, blocks, development_keys

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.slow]


def test_the_start_of_a_data_engineer_leads_to_a_clean_audit(
    spark: SparkSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture,
) -> None:
    monkeypatch.chdir(tmp_path)
    development_keys()
    reader = Session()
    for block in blocks("start/engineer.md", "python", "console"):
        # The JVM has the folder it was started in, and the session its own configuration.
        block = type(block)(
            language=block.language,
            title=None,
            text=block.text.replace('"customers"', f'"{tmp_path}/customers"').replace(
                '"keys/policy.toml"', f'"{tmp_path}/keys/policy.toml"'
            ),
        )
        getattr(reader, f"_{block.language}")(block)
    assert reader.names["report"].where("error is not null").isEmpty()
    assert "user7@example.com" in capsys.readouterr().out
    assert reader.shown[-1].rstrip().endswith("clean")
