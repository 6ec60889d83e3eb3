"""Write an index beside its data file, and keep what an index there holds already."""

from __future__ import annotations

from dataclasses import dataclass

from secure_bloom.errors import FileChangedError, FormatError
from secure_bloom.paimon.container import FileIndex, Index
from secure_bloom.paimon.index_files import index_path, read_beside, read_whole
from secure_bloom.storage import InputFile, open_input, replace_tail

#: The most times that a build starts again because another build was faster.
_TRIES = 10
NamedIndexes = list[tuple[str, Index]]


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexMerge:
    """The ways to write an index: ``replace_damaged`` replaces one that cannot be read."""

    replace_damaged: bool
    dry_run: bool

    def write(self, file: InputFile, indexes: NamedIndexes) -> FileIndex:
        """Write the indexes of columns beside ``file``; returns all that the index holds now.

        Builds on several machines may meet: then the index is read and merged again.
        """
        for _ in range(_TRIES - 1):
            try:
                return self._write_once(file, indexes)
            except FileChangedError:
                # Try again only if the index was changed, not the data file itself.
                file.check_unchanged()
        return self._write_once(file, indexes)

    def _write_once(self, file: InputFile, indexes: NamedIndexes) -> FileIndex:
        # The lock is the data file's, because the index may not be there yet.
        with file.exclusive():
            return self._write_alone(file, indexes)

    def _write_alone(self, file: InputFile, indexes: NamedIndexes) -> FileIndex:
        try:
            before = read_beside(file)
        except FormatError as error:
            return self._replace(file, indexes, error)
        merged = (before or FileIndex()).with_indexes(indexes)
        if self.dry_run:
            return merged
        path = index_path(file)
        if before is None:
            # Not over an index that another machine has written since we looked.
            replace_tail(file, 0, (merged.to_bytes(),), output=path, must_be_new=True)
            return merged
        # Looked at here: the write below checks only the old index that it replaces.
        file.check_unchanged()
        with open_input(path) as old:
            if read_whole(old) != before:
                raise FileChangedError("the index was changed after it was read", path=path)
            replace_tail(old, 0, (merged.to_bytes(),))
        return merged

    def _replace(self, file: InputFile, indexes: NamedIndexes, damage: FormatError) -> FileIndex:
        """Return a new index in the place of a damaged one, if the caller wants that."""
        if not self.replace_damaged:
            damage.hint = damage.hint or (
                "replace_damaged (--replace-damaged) writes a new one in its place; "
                "name all columns that it shall have"
            )
            raise damage
        merged = FileIndex().with_indexes(indexes)
        if not self.dry_run:
            replace_tail(file, 0, (merged.to_bytes(),), output=index_path(file))
        return merged
