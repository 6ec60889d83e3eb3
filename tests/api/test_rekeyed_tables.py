"""Options of tables where there is none, and those that one format has and another has not."""

from __future__ import annotations

from pathlib import Path

import pytest

import secure_bloom as sb
from secure_bloom.api.rekeyed_tables import open_decryption, open_rotation
from secure_bloom.errors import PolicyError
from secure_bloom.lakes.formats import ICEBERG
from secure_bloom.lakes.writable_table import TableChoice
from testing.delta_tables import write_table
from testing.tables import KEYRING
from tests.lakes.iceberg.tables import NAME, in_settings, people

POLICY = sb.KeyPolicy(footer_key="k_footer")


@pytest.mark.parametrize("choice", [{"since": 1}, {"branch": "b"}, {"commit_every": 1}], ids=str)
def test_options_of_tables_are_refused_for_files(choice: dict[str, object]) -> None:
    with pytest.raises(PolicyError, match=next(iter(choice))):
        TableChoice(**choice).refuse()  # type: ignore[arg-type]


def test_a_delta_table_has_no_branch(tmp_path: Path) -> None:
    table = write_table(tmp_path / "t", 1)
    with pytest.raises(PolicyError, match="branch is for Iceberg tables"):
        sb.reencrypt(table, policy=POLICY, keys=KEYRING, branch="b")


def test_files_are_decrypted_into_a_folder_alone(tmp_path: Path) -> None:
    with pytest.raises(PolicyError, match="output is needed"):
        sb.decrypt(write_table(tmp_path / "t", 1), keys=KEYRING)


def test_an_iceberg_table_knows_no_time_of_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    people(in_settings(tmp_path, monkeypatch), files=1)
    for opened in (
        lambda choice: open_rotation(ICEBERG, NAME, POLICY, {}, choice),
        lambda choice: open_decryption(ICEBERG, NAME, choice),
    ):
        with pytest.raises(PolicyError, match="takes the id of a snapshot"):
            opened(TableChoice(written=1))
