"""Summary files: a ``_metadata`` file repeats the footers of others, and is stale once they change.

Each of its column chunks names its file in ``file_path``, from the folder of the summary.  Summary
files are left as they are: other writers own them.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator

from secure_bloom.errors import SecureBloomError
from secure_bloom.parquet.footer.locate import read_tail
from secure_bloom.storage import file_key, open_input, sibling, summary_files


def summary_notes(changed: Iterable[str], *, what: str = "got filters") -> tuple[str, ...]:
    """Return one sentence for each summary file that describes one of the changed files.

    ``what`` happened to these.
    """
    files = list(changed)
    return tuple(
        note
        for summary in summary_files(files)
        for note in stale_summary_notes(summary, files, what=what)
    )


def stale_summary_notes(summary: str, changed: Iterable[str], *, what: str) -> Iterator[str]:
    """Yield the sentence on a summary file, if it describes one of the changed files."""
    described = _described(summary)
    # A summary that cannot be read may describe any file, so it gets a note too.
    if any(described is None or file_key(file) in described for file in changed):
        yield (
            f"{summary} describes files that {what}, and what it says of their footers is out of "
            "date: write it anew, or remove it"
        )


def _described(summary: str) -> set[Hashable] | None:
    """Return the files that a summary describes; None where it cannot be read."""
    try:
        with open_input(summary) as file:
            found = read_tail(file).scan
    except SecureBloomError:
        return None
    # Encrypted, so it cannot be looked into.
    if found is None:
        return None
    paths = {chunk.file_path for group in found.row_groups for chunk in group.columns}
    return {file_key(sibling(summary, path)) for path in paths if path is not None}
