"""Split a plan into the tasks of one Spark job, with row groups of about equal bytes in each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from secure_bloom.reading.pruning.plan import PlannedFile, RowGroupPlan

#: The least and the most bytes of a task, and the number of tasks from which on tasks grow.
_LEAST, _MOST = 4 * 1024 * 1024, 128 * 1024 * 1024


_TASKS = 64


#: The cost of opening a file, in bytes.
_OPENING = 1024 * 1024


def split(files: Sequence[PlannedFile]) -> list[tuple[PlannedFile, ...]]:
    """Return the files in groups, in their order. A large file is in several groups."""
    pieces = [(piece, size) for file in files for piece, size in _pieces(file)]
    total = sum(size for _, size in pieces)
    target = min(max(total // _TASKS, _LEAST), _MOST)
    return [_joined(group) for group in _groups(pieces, target)]


def _pieces(file: PlannedFile) -> Iterator[tuple[PlannedFile, int]]:
    """Yield each row group as a file of its own, with an estimate of the bytes to read."""
    # If the last row groups were skipped, the estimate is too large; that costs only a task.
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
    """Join the row groups of a file again, so that a task reads its footer once."""
    found: dict[str, PlannedFile] = {}
    for piece in pieces:
        before = found.get(piece.path)
        groups = piece.row_groups if before is None else before.row_groups + piece.row_groups
        found[piece.path] = replace(piece, row_groups=groups)
    return tuple(found.values())
