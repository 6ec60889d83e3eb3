"""What a new file takes over from the old one: permissions, owner, attributes; and broken links."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from secure_bloom.errors import PolicyError
from secure_bloom.storage import open_input
from testing.storage import replaced


@pytest.mark.usefixtures("staging")
@pytest.mark.parametrize("mode", [0o600, 0o444, 0o664, 0o755])
def test_permission_bits_are_carried_over(data_file: Path, mode: int) -> None:
    data_file.chmod(mode)
    replaced(data_file)
    assert data_file.stat().st_mode & 0o7777 == mode


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
def test_the_owner_is_carried_over(data_file: Path) -> None:
    os.chown(data_file, 1234, 5678)
    replaced(data_file)
    assert (data_file.stat().st_uid, data_file.stat().st_gid) == (1234, 5678)


def test_extended_attributes_are_carried_over(data_file: Path) -> None:
    try:
        os.setxattr(data_file, "user.lineage", b"job 7")
    except OSError:
        pytest.skip("the file system has no extended attributes")
    replaced(data_file)
    assert os.getxattr(data_file, "user.lineage") == b"job 7"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
def test_a_group_that_cannot_be_carried_over_gets_no_more_rights_than_all(
    data_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    os.chown(data_file, -1, 5678)
    data_file.chmod(0o664)

    def forbidden(*_: int) -> None:
        raise PermissionError(errno.EPERM, "not yours")

    monkeypatch.setattr(os, "fchown", forbidden)
    replaced(data_file)
    assert data_file.stat().st_mode & 0o7777 == 0o644


def test_a_link_to_nothing_is_told_apart_from_a_file_that_went(tmp_path: Path) -> None:
    link = tmp_path / "link.parquet"
    link.symlink_to("nowhere.parquet")
    with pytest.raises(PolicyError, match="is a link to a file that is not there") as caught:
        open_input(str(link))
    assert isinstance(caught.value, FileNotFoundError)
    assert caught.value.path == str(link)
    assert "VACUUM" not in (caught.value.hint or "")
    link.unlink()
    with pytest.raises(PolicyError, match="no such file"):
        open_input(str(link))
