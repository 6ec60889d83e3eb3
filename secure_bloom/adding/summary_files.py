"""Summary files: a ``_metadata`` file repeats the footers of others, and is stale once they change.

Each of its column chunks names its file in ``file_path``, from the folder of the summary.  Summary
files are left as they are: other writers own them.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable

from secure_bloom.errors import SecureBloomError
from secure_bloom.parquet.footer import read_tail
from secure_bloom.storage import file_key, open_input, sibling, summary_files


def summary_notes(changed: Iterable[str], *, what: str = "got filters") -> tuple[str, ...]:
    """One sentence for each summary file that describes one of the changed files.

    ``what`` happened to these.
    """
    files = list(changed)
    keys = {file_key(file) for file in files}
    return tuple(
        f"{summary} describes files that {what}, and what it says of their footers is out of "
        "date: write it anew, or remove it"
        for summary in summary_files(files)
        if _describes(summary, keys)
    )


def _describes(summary: str, keys: set[Hashable]) -> bool:
    try:
        with open_input(summary) as file:
            outline = read_tail(file).outline
    except SecureBloomError:
        outline = None
    # A summary that cannot be read may describe any file, so it gets a note too.
    if outline is None:
        return True
    paths = {chunk.file_path for group in outline.row_groups for chunk in group.columns}
    return any(file_key(sibling(summary, path)) in keys for path in paths if path is not None)
