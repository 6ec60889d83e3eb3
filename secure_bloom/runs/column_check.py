"""Check the columns of a request against footers, so that one mistake is one error of the run."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from secure_bloom.encryption.file_keys import KeyResolver
from secure_bloom.errors import SecureBloomError
from secure_bloom.parquet.footer.locate import read_tail
from secure_bloom.parquet.footer.opened import Footer, unlock_to_read
from secure_bloom.parquet.key_material_files import file_keys
from secure_bloom.storage import open_input


def require_in_one(
    files: Iterable[str], resolver: KeyResolver, check: Callable[[Footer], object]
) -> None:
    """Raise the first error of ``check`` if it accepts the footer of no file.

    Files are read until one is accepted, which mostly is the first.  A file whose footer cannot be
    read is passed over: it fails when its turn comes.
    """
    first: SecureBloomError | None = None
    for path in files:
        try:
            with open_input(path) as file:
                footer = unlock_to_read(read_tail(file), file_keys(resolver, file))
        except SecureBloomError:
            continue
        try:
            check(footer)
        except SecureBloomError as error:
            first = first or error
        else:
            return
    if first is not None:
        raise first
