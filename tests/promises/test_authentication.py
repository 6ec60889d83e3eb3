"""A module that does not authenticate is an error."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest

import secure_bloom as sb
from secure_bloom.parquet.pages import chunk_extent
from testing.surgery import filter_place, flip, opened
from testing.tables import KEYRING, Mode, customers, write

CTR = {"encryption_algorithm": "AES_GCM_CTR_V1"}


def with_filters(folder: Path, mode: Mode = Mode.ENCRYPTED, **encryption: str) -> Path:
    path = write(folder / "x.parquet", customers(500), mode, encryption=encryption)
    sb.add_bloom_filters(path, columns="email", keys=KEYRING)
    return path


def last_page_byte(path: Path) -> int:
    """The offset of the last byte of the pages of ``email``."""
    with opened(path) as it:
        start, length = chunk_extent(it.chunk(0, "email"))
    return start + length - 1


def assert_is_an_error(path: Path) -> None:
    """A probe has an error in its report, and no verdict."""
    [file] = sb.probe(path, "email", ["nobody@example.com"], keys=KEYRING).files
    assert file.error
    assert not file.row_groups


def test_a_module_that_does_not_authenticate_is_an_error_never_no_filter(tmp_path: Path) -> None:
    path = with_filters(tmp_path)
    flip(path, filter_place(path, 0, "email").stop - 1)
    assert_is_an_error(path)
    with pytest.raises(sb.IntegrityError) as caught:
        # Statistics say nothing of this e-mail, so the filter is asked.
        sb.read_table(path, where=[("email", "=", "user1x@example.com")], keys=KEYRING)
    assert (caught.value.row_group, caught.value.column) == (0, "email")


@pytest.mark.parametrize("mode", [Mode.ENCRYPTED, Mode.SIGNED], ids=lambda mode: mode.name)
def test_a_footer_that_does_not_authenticate_is_an_error(tmp_path: Path, mode: Mode) -> None:
    path = with_filters(tmp_path, mode)
    with opened(path) as it:
        inside = it.footer.tail.offset + len(it.footer.tail.clear + it.footer.tail.sealed) - 1
    flip(path, inside)
    assert_is_an_error(path)


def test_a_page_that_does_not_authenticate_is_an_error(tmp_path: Path) -> None:
    path = with_filters(tmp_path)
    flip(path, last_page_byte(path))
    with pytest.raises(sb.IntegrityError):
        sb.read_table(path, columns=["email"], keys=KEYRING)


def test_pages_of_aes_gcm_ctr_v1_have_no_tag(tmp_path: Path) -> None:
    """Changes in them are not noticed as such: at most the bytes decode to nothing."""
    path = with_filters(tmp_path, **CTR)
    flip(path, last_page_byte(path))
    with contextlib.suppress(sb.FormatError):
        sb.read_table(path, columns=["email"], keys=KEYRING)
    # Everything beside pages has a tag all the same.
    flip(path, filter_place(path, 0, "email").stop - 1)
    assert_is_an_error(path)
