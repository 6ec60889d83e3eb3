"""Check the columns of a request against footers: a mistake is one error, not one a file."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from secure_bloom.encryption.file_keys import KeyResolver
from secure_bloom.errors import PolicyError, SecureBloomError
from secure_bloom.parquet.footer.locate import read_tail
from secure_bloom.parquet.footer.opened import Footer, unlock_to_read
from secure_bloom.parquet.key_material_files import file_keys
from secure_bloom.storage import open_input


def require_in_one(
    files: Iterable[str], resolver: KeyResolver, check: Callable[[Footer], object]
) -> None:
    """Raise the first PolicyError of ``check`` if every footer raises one.

    Files are read until ``check`` accepts one, mostly the first. A file whose footer cannot be
    read is skipped here, and fails when its turn comes.
    """
    first: PolicyError | None = None
    for path in files:
        try:
            with open_input(path) as file:
                footer = unlock_to_read(read_tail(file), file_keys(resolver, file))
        except SecureBloomError:
            continue
        try:
            check(footer)
        except PolicyError as error:
            first = first or error
            continue
        except SecureBloomError:
            # It may be an error of this file alone.
            return
        return
    if first is not None:
        raise first
