"""Checksums that Hadoop leaves beside a file: right ones say nothing, others are a finding."""

from __future__ import annotations

import zlib
from pathlib import Path

import pytest

import secure_bloom as sb
from testing.tables import customers, write

BLOCK = 512


def crc_of(content: bytes, block: int = BLOCK) -> bytes:
    sums = [zlib.crc32(content[i : i + block]) for i in range(0, len(content), block)]
    return b"crc\0" + block.to_bytes(4, "big") + b"".join(it.to_bytes(4, "big") for it in sums)


def found(path: Path, checksums: bytes) -> list[str]:
    (path.parent / f".{path.name}.crc").write_bytes(checksums)
    (path.parent / "p.toml").write_text("[columns.city]\nbloom = false\n")
    report = sb.audit(path, policy=path.parent / "p.toml")
    return [it.id for it in report.findings]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return write(tmp_path / "x.parquet", customers(30))


@pytest.mark.parametrize("block", [BLOCK, 7, 1 << 20])
def test_right_checksums_are_no_finding(path: Path, block: int) -> None:
    assert "checksum-stale" not in found(path, crc_of(path.read_bytes(), block))


@pytest.mark.parametrize(
    "change",
    [
        lambda right: right[:-4],
        lambda right: right + bytes(4),
        lambda right: right[:-1] + bytes([right[-1] ^ 1]),
        lambda right: right[:8] + bytes([right[8] ^ 1]) + right[9:],
        lambda right: b"cra" + right[3:],
        lambda right: right[:4] + bytes(4) + right[8:],
        lambda _: b"",
        lambda right: right * 100,
    ],
)
def test_checksums_of_other_bytes_are_a_finding(path: Path, change: object) -> None:
    right = crc_of(path.read_bytes())
    assert "checksum-stale" in found(path, change(right))  # type: ignore[operator]
