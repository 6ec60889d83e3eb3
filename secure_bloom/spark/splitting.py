"""A plan cut into the tasks of one Spark job, each with row groups of about as many bytes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from secure_bloom.reading.pruning.plan import PlannedFile, RowGroupPlan

#: Bytes of a task at least and at most, and how many tasks there are before tasks grow.
_LEAST, _MOST = 4 * 1024 * 1024, 128 * 1024 * 1024
_TASKS = 64
#: What opening a file costs beside its bytes.
_OPENING = 1024 * 1024


def split(files: Sequence[PlannedFile]) -> list[tuple[PlannedFile, ...]]:
    """The files in groups, in their order; a file with many bytes is in several."""
    pieces = [(piece, size) for file in files for piece, size in _pieces(file)]
    total = sum(size for _, size in pieces)
    target = min(max(total // _TASKS, _LEAST), _MOST)
    return [_joined(group) for group in _groups(pieces, target)]


def _pieces(file: PlannedFile) -> Iterator[tuple[PlannedFile, int]]:
    """Each row group as a file of its own, and about the bytes that reading it takes."""
    # Where the last row groups were skipped this is too much, which costs a task and no more.
    size = file.size // (1 + max(group.row_group for group in file.row_groups))
    for group in file.row_groups:
        yield replace(file, row_groups=(group,)), int(size * _share(group))


def _share(group: RowGroupPlan) -> float:
    if group.ranges is None or not group.rows:
        return 1.0
    return sum(end - start for start, end in group.ranges) / group.rows


def _groups(pieces: Sequence[tuple[PlannedFile, int]], target: int) -> Iterator[list[PlannedFile]]:
    group: list[PlannedFile] = []
    filled = 0
    for piece, size in pieces:
        if group and filled + size > target:
            yield group
            group, filled = [], 0
        is_open = bool(group) and group[-1].path == piece.path
        group.append(piece)
        filled += size if is_open else size + _OPENING
    if group:
        yield group


def _joined(pieces: Sequence[PlannedFile]) -> tuple[PlannedFile, ...]:
    """Row groups of one file together again: its footer is read once a task."""
    found: dict[str, PlannedFile] = {}
    for piece in pieces:
        before = found.get(piece.path)
        groups = piece.row_groups if before is None else before.row_groups + piece.row_groups
        found[piece.path] = replace(piece, row_groups=groups)
    return tuple(found.values())
