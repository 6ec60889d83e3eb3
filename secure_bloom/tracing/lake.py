"""Search all files below some paths, including their names, and report what was confirmed."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Final

from secure_bloom.encryption.file_keys import KeyResolver
from secure_bloom.errors import SecureBloomError
from secure_bloom.running.ordered_pool import in_order
from secure_bloom.storage import local_path, open_input
from secure_bloom.storage.dispatch import tree_of
from secure_bloom.storage.listing import missing_path
from secure_bloom.tracing.index import WordIndex
from secure_bloom.tracing.report import Occurrence, TracedFile, TraceReport, UnreadPart
from secure_bloom.tracing.search import (
    FileTrace,
    PartTrace,
    confirm,
    counts_of,
    texts_with_values,
    trace_file,
    trace_text,
)
from secure_bloom.tracing.verdicts import Meaning, verdict

Progress = Callable[[int, int], object]
#: What the report calls the place of words in a path.
NAME = "its name"


@dataclass(frozen=True, slots=True)
class FoundFile:
    """A file, and its path relative to the given path. The relative path is searched as a text."""

    path: str
    name: str


def candidates(roots: Iterable[str]) -> Iterator[FoundFile]:
    """Yield all files at and below paths. Raises MissingPathError for a path with nothing."""
    for root in map(local_path, roots):
        tree = tree_of(root)
        if not tree.find_folder(root):
            if not tree.is_file(root):
                raise missing_path(tree, root)
            yield FoundFile(root, root.rpartition("/")[2])
            continue
        for folder, _, names in tree.walk(root):
            below = folder[len(root) :].strip("/")
            for name in names:
                yield FoundFile(tree.join(folder, name), f"{below}/{name}" if below else name)


def search_files(
    found: Sequence[FoundFile],
    index: WordIndex,
    *,
    jobs: int = 1,
    progress: Progress | None = None,
    keys: KeyResolver | None = None,
) -> TraceReport:
    """Search files for words of an index, and confirm what was found.

    ``keys`` open encrypted Parquet files. If columns do not fit into memory, the files are read
    twice: first to collect the words that pass the filter, then for the search.
    """
    index = index.narrowed(partial(search_files, found, jobs=jobs, keys=keys))
    traces: list[FileTrace] = []
    searched = asked = size = 0
    many = _ManyThreads(jobs)
    for pair in in_order(
        partial(_traced, index=index, many=many, keys=keys), found, jobs, room=jobs
    ):
        searched += 1
        for trace in pair:
            asked += trace.asked
            if trace.parts or trace.unread:
                traces.append(trace)
        size += pair[0].size
        if progress is not None:
            progress(searched, len(found))
    confirm(traces, index)
    named = [trace for trace in traces if _is_named(trace, index)]
    names = _Names([trace.path for trace in named], index)
    files = (_reported(trace, index, names) for trace in traces)
    return TraceReport(
        columns=tuple(index.columns),
        files=tuple(it for it in files if it.found or it.unread),
        searched=searched,
        bytes=size,
        asked=asked,
    )


class _ManyThreads:
    """Gives several threads to one large file at a time. Other files have one thread each."""

    def __init__(self, jobs: int) -> None:
        self._jobs = jobs
        self._lock = threading.Lock()

    @contextmanager
    def of(self, size: int) -> Iterator[int]:
        """Yield how many threads search a file of ``size`` bytes."""
        is_free = size >= _LARGE and self._jobs > 1 and self._lock.acquire(blocking=False)
        try:
            yield self._jobs if is_free else 1
        finally:
            if is_free:
                self._lock.release()


#: Bytes of a file that several threads search.
_LARGE: Final = 8 << 20


def _traced(
    candidate: FoundFile, index: WordIndex, many: _ManyThreads, keys: KeyResolver | None
) -> tuple[FileTrace, FileTrace]:
    name = trace_text(candidate.path, NAME, _encoded(candidate.name), index)
    try:
        with open_input(candidate.path) as file, many.of(file.size) as threads:
            return trace_file(file, index, threads, keys), name
    except SecureBloomError as error:
        # An empty file holds nothing.
        unread = [] if error.message == "the file is empty" else [("", error.message)]
        return FileTrace(path=candidate.path, unread=unread), name


def _reported(trace: FileTrace, index: WordIndex, names: _Names) -> TracedFile:
    found = [it for part in trace.parts for it in occurrences(part, index)]
    known = {it.column for it in found if it.verdict is Meaning.VALUES}
    found += [it for it in _together(trace, index) if it.column not in known]
    return TracedFile(
        path=names.masked(trace.path),
        bytes=trace.size,
        asked=trace.asked,
        found=tuple(found),
        unread=tuple(UnreadPart(place=place, reason=reason) for place, reason in trace.unread),
    )


def _is_named(trace: FileTrace, index: WordIndex) -> bool:
    """Return whether values were found in the name of a file."""
    parts = (part for part in trace.parts if part.place == NAME)
    return any(True for part in parts for _ in occurrences(part, index))


def occurrences(part: PartTrace, index: WordIndex) -> Iterator[Occurrence]:
    """Yield the occurrences of each column in a part of a file that chance does not explain."""
    for owner, counts, passed in counts_of(part, index):
        column = index.columns[owner]
        meaning = verdict(counts, part.size, column.values, part.distinct)
        if meaning is not Meaning.NOTHING:
            compared, confirmed = part.confirmed.get(owner, (0, 0))
            digests = part.confirmed_digests.get(owner, 0)
            yield Occurrence(
                column=column.name,
                place=part.place,
                verdict=meaning,
                passed=passed,
                compared=compared or digests,
                confirmed=confirmed or digests,
                share=round(min(1.0, passed / max(column.values, 1)), 6),
            )


def _together(trace: FileTrace, index: WordIndex) -> Iterator[Occurrence]:
    """Yield the columns whose values occur in the parts of a file, taken together.

    An archive may have many small files, each with too few values to show it.
    """
    if len(trace.parts) < 2:
        return
    import numpy as np

    from secure_bloom.kernels.distinct import distinct

    whole = PartTrace(place="all parts", size=sum(min(it.size, trace.size) for it in trace.parts))
    whole.entries = distinct(np.concatenate([it.entries for it in trace.parts]))
    for part in trace.parts:
        for owner, (compared, equal) in part.confirmed.items():
            known = whole.confirmed.get(owner, (0, 0))
            whole.confirmed[owner] = known[0] + compared, known[1] + equal
    yield from (it for it in occurrences(whole, index) if it.verdict is Meaning.VALUES)


class _Names:
    """Masks the path components that hold a value. The same component gets the same number."""

    def __init__(self, paths: Sequence[str], index: WordIndex) -> None:
        self._paths = frozenset(paths)
        parts = {part for path in paths for part in path.split("/")}
        self._hidden = texts_with_values(map(_encoded, parts), index)
        self._numbers: dict[str, int] = {}

    def masked(self, path: str) -> str:
        """Return a path in which a number replaces each component that has a word of a column."""
        return "/".join(map(self._part, path.split("/"))) if path in self._paths else path

    def _part(self, part: str) -> str:
        if _encoded(part) not in self._hidden:
            return part
        number = self._numbers.setdefault(part, len(self._numbers) + 1)
        return f"***{number}"


def _encoded(name: str) -> bytes:
    return name.encode("utf-8", "surrogateescape")
