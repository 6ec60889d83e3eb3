"""One-column files of every type, encoding and encryption mode, before and after filters."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

import secure_bloom as sb
from secure_bloom.bloom.split_block import SplitBlockBloomFilter
from secure_bloom.bloom.verdicts import verdict
from secure_bloom.parquet.literals import physical_values
from secure_bloom.parquet.structures.metadata import Type
from testing.columns import DICTIONARY, Column
from testing.live_footer import encode_footer
from testing.surgery import filter_of, opened
from testing.tables import KEYRING, Mode, write
from testing.thrift.metadata import SchemaElement

#: So few that they fill one block of 256 bits to about 10 % false positives.
ROWS_PER_GROUP = 42
#: Values are spread over many small filters: a reader asked once gives as many verdicts.
ROW_GROUPS = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class TypedFile:
    """A file of one column, every seventh row null, and the numbers of its values."""

    path: Path
    column: Column
    encoding: str
    mode: Mode
    present: list[int]

    def sample(self, count: int) -> list[int]:
        """Some of the values that are there, from all over the file."""
        every = sorted(set(self.present))
        return every[:: max(1, len(every) // count)][:count]


def typed_file(
    folder: Path,
    column: Column,
    encoding: str,
    mode: Mode = Mode.PLAIN,
    *,
    row_groups: int = ROW_GROUPS,
    **options: Any,
) -> TypedFile:
    """Write ``column`` in ``encoding``, without filters unless ``options`` ask for them."""
    count = row_groups * ROWS_PER_GROUP
    numbers = [None if i % 7 == 3 else n for i, n in enumerate(column.values(0, count))]
    path = folder / f"{mode.name.lower()}.parquet"
    is_dictionary = encoding == DICTIONARY
    write(
        path,
        pa.table({"x": column.array(numbers)}),
        mode,
        column_keys={"k_pii": [column.leaf]},
        row_group_size=ROWS_PER_GROUP,
        store_schema=False,
        use_dictionary=is_dictionary,
        column_encoding=None if is_dictionary else {column.leaf: encoding},
        **{**column.options, **options},
    )
    if column.declare is not None:
        declare(path, column.declare)
    present = [n for n in numbers if n is not None]
    return TypedFile(path=path, column=column, encoding=encoding, mode=mode, present=present)


def declare(path: Path, change: Callable[[SchemaElement], None]) -> None:
    """Give the file's only column another logical type."""
    with opened(path) as it:
        change(it.footer.leaves[0].element)
        content = it.file.read_at(0, it.footer.tail.offset) + encode_footer(it.footer)
    path.write_bytes(content)


def add_filter(file: TypedFile, *, fpp: float = 0.1, keys: Any = KEYRING) -> None:
    """Add a filter of the file's values; it must work."""
    columns = {file.column.leaf: sb.BloomFilterOptions(fpp=fpp)}
    (report,) = sb.add_bloom_filters(file.path, columns=columns, keys=keys).files
    assert report.error is None
    assert {done.action for done in report.filters} == {"added"}


def our_verdicts(file: TypedFile, numbers: list[int], *, keys: Any = KEYRING) -> list[list[str]]:
    """Per value, our verdict in each row group."""
    values = [file.column.written(n) for n in numbers]
    return probed_verdicts(file.path, file.column.leaf, values, keys=keys)


def probed_verdicts(
    path: Path, column: str, values: list[Any], *, keys: Any = KEYRING
) -> list[list[str]]:
    """Per value, our verdict in each row group; of INT96 the filter's own."""
    (probed,) = sb.probe(path, column, values, keys=keys).files
    assert probed.error is None
    if probed.note is None:
        return [[group.verdicts[value] for group in probed.row_groups] for value in values]
    with opened(path, keys) as it:
        leaf = next(leaf for leaf in it.footer.leaves if leaf.name == column)
        count = len(it.footer.row_groups)
    assert leaf.type is Type.INT96
    filters = [filter_of(path, row_group, column, keys) for row_group in range(count)]
    forms = [physical_values(leaf, value) for value in values]
    return [[verdict(it, form) for it in filters] for form in forms]


def filters_of(path: Path, column: str = "x") -> list[SplitBlockBloomFilter]:
    """The filters of all row groups."""
    with opened(path) as it:
        count = len(it.footer.row_groups)
    return [filter_of(path, row_group, column) for row_group in range(count)]


def folded_to(
    sizes: list[SplitBlockBloomFilter], filters: list[SplitBlockBloomFilter]
) -> list[SplitBlockBloomFilter]:
    """The filters of the same values at the sizes of others."""
    return [_folded(f, like.block_count) for f, like in zip(filters, sizes, strict=True)]


def _folded(bloom_filter: SplitBlockBloomFilter, block_count: int) -> SplitBlockBloomFilter:
    while bloom_filter.block_count > block_count:
        bloom_filter = bloom_filter.folded()
    return bloom_filter
