"""Open real files as the package does, and change single places in them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import secure_bloom as sb
from secure_bloom.bloom.split_block import SplitBlockBloomFilter
from secure_bloom.bloom.stored import read_bloom_filter
from secure_bloom.encryption.file_keys import FileKeys, KeyResolver
from secure_bloom.encryption.kms import ExplicitKeys, Keyring
from secure_bloom.parquet.footer.chunks import Chunk
from secure_bloom.parquet.footer.locate import MAGIC, read_tail
from secure_bloom.parquet.footer.opened import unlock
from secure_bloom.parquet.key_material_files import file_keys
from secure_bloom.storage import InputFile, open_input
from testing.live_footer import LiveFooter, encode_footer, live, live_chunk, seal_metadata
from testing.tables import KEYRING, SECRETS, Mode, customers, write
from testing.thrift import trees
from testing.thrift.metadata import ColumnMetaData, FileMetaData


class Opened(NamedTuple):
    """A file with its keys and its footer, to be edited."""

    file: InputFile
    keys: FileKeys
    footer: LiveFooter

    def chunk(self, row_group: int, name: str) -> Chunk:
        ordinal = [leaf.name for leaf in self.footer.leaves].index(name)
        return live_chunk(self.footer, row_group, ordinal)


@contextmanager
def opened(path: Path, keys: Keyring | ExplicitKeys | None = KEYRING) -> Iterator[Opened]:
    with open_input(str(path)) as file:
        found = file_keys(KeyResolver(keys), file)
        yield Opened(file, found, live(unlock(read_tail(file), found)))


def edit_column(
    path: Path, row_group: int, name: str, change: Callable[[ColumnMetaData], object]
) -> None:
    """Change a chunk's metadata and write the footer back, encrypted or signed as it was."""
    with opened(path) as it:
        chunk = it.chunk(row_group, name)
        change(chunk.meta_data)
        seal_metadata(chunk)
        content = it.file.read_at(0, it.footer.tail.offset) + encode_footer(it.footer)
    path.write_bytes(content)


def edit_footer(path: Path, change: Callable[[Opened], bytes | None]) -> None:
    """Change a footer and write it back; what ``change`` gives stands before it."""
    with opened(path) as it:
        more = change(it) or b""
        content = it.file.read_at(0, it.footer.tail.offset) + more + encode_footer(it.footer)
    path.write_bytes(content)


def forged_signed(path: Path) -> Path:
    """A signed file whose footer was altered, and its key renamed so that nobody can tell.

    Statistics and filters of `id`, in clear, rule out what is there.
    """
    write(path, customers(2000), Mode.SIGNED)
    sb.add_bloom_filters(path, columns=["id"], keys=KEYRING)
    with open_input(str(path)) as file:
        tail = read_tail(file)
    metadata = FileMetaData(trees.decode(tail.clear)[0])
    material = json.loads(metadata.footer_signing_key_metadata or b"")
    material["masterKeyID"] = "k_elsewhere"
    metadata.footer_signing_key_metadata = json.dumps(material).encode()
    ordinal = [element.name for element in metadata.schema[1:]].index("id")
    first, second = (group.columns[ordinal].meta_data for group in metadata.row_groups)
    assert first is not None
    assert second is not None
    first.bloom_filter_offset, second.bloom_filter_offset = (
        second.bloom_filter_offset,
        first.bloom_filter_offset,
    )
    for meta_data in (first, second):
        statistics = meta_data.statistics
        assert statistics is not None
        statistics.min_value = statistics.max_value = (10**9).to_bytes(8, "little")
        statistics.min = statistics.max = statistics.max_value
    body = metadata.encode() + tail.sealed
    path.write_bytes(
        path.read_bytes()[: tail.offset] + body + len(body).to_bytes(4, "little") + MAGIC
    )
    return path


def flip(path: Path, offset: int, mask: int = 0x01) -> None:
    content = bytearray(path.read_bytes())
    content[offset] ^= mask
    path.write_bytes(content)


def filter_place(path: Path, row_group: int, name: str) -> slice:
    """Where the filter's modules stand in the file."""
    with opened(path) as it:
        meta_data = it.chunk(row_group, name).meta_data
        start = meta_data.bloom_filter_offset
        assert start is not None
        return slice(start, start + (meta_data.bloom_filter_length or 0))


def filter_of(
    path: Path, row_group: int, name: str, keys: Keyring | ExplicitKeys | None = KEYRING
) -> SplitBlockBloomFilter:
    with opened(path, keys) as it:
        stored = read_bloom_filter(it.file, it.chunk(row_group, name))
    assert stored is not None
    return stored.filter


def assert_tells_no_secret(text: str) -> None:
    """No key in any form, and no cell of ``tables.customers``."""
    for secret in [*SECRETS, "@example.com", "DE0000"]:
        assert secret not in text
