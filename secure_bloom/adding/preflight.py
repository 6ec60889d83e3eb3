"""Check a request against every footer, so that errors of the request come before any write."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from secure_bloom.adding.request import FilterRequest
from secure_bloom.encryption.keys import KeyResolver
from secure_bloom.errors import FormatError, SecureBloomError, located
from secure_bloom.parquet.footer import Footer, open_chunk, read_tail, unlock
from secure_bloom.parquet.key_material_files import file_keys
from secure_bloom.parquet.schema import require_filterable, unknown_column
from secure_bloom.storage import open_input

if TYPE_CHECKING:
    from secure_bloom.adding.torn_append import Cut


@dataclass(frozen=True, slots=True, kw_only=True)
class Survey:
    """The check of one file; ``chunks`` is the number of column chunks that are to have filters.

    ``refusal`` is an error of the request itself, which stops the run; ``failure`` one of this
    file, which does not stop the others.  ``cut`` is what a killed run had left in it.
    """

    path: str
    columns: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    chunks: int = 0
    refusal: SecureBloomError | None = None
    failure: SecureBloomError | None = None
    cut: Cut | None = None


def survey_file(
    path: str, request: FilterRequest, resolver: KeyResolver, *, repair: bool = False
) -> Survey:
    """Read one footer with its keys, and check the request against it.  Never raises our errors.

    With ``repair`` what a killed ``--in-place`` run left behind is cut off first.
    """
    try:
        return _survey(path, request, resolver)
    except SecureBloomError as error:
        if repair and isinstance(error, FormatError):
            return _mended_survey(path, request, resolver, error)
        return Survey(path=path, failure=error)


def _mended_survey(
    path: str, request: FilterRequest, resolver: KeyResolver, error: FormatError
) -> Survey:
    from secure_bloom.adding.torn_append import mend

    try:
        mended = mend(path, resolver)
    except SecureBloomError as refusal:
        return Survey(path=path, failure=refusal)
    if mended is None:
        return Survey(path=path, failure=error)
    return replace(survey_file(path, request, resolver), cut=mended.cut)


def _survey(path: str, request: FilterRequest, resolver: KeyResolver) -> Survey:
    with located(path=path), open_input(path) as file:
        keys = file_keys(resolver, file)
        footer = unlock(read_tail(file), keys)
        refusal = _refusal(path, footer, request)
        if footer.row_groups and refusal is None:
            # One row group tells of the keys; all are looked at when the file is planned.
            for ordinal in request.resolve(footer.leaves):
                request.check_key(open_chunk(footer, 0, ordinal, keys))
        return Survey(
            path=path,
            columns=tuple(leaf.name for leaf in footer.leaves),
            missing=tuple(request.missing(footer.leaves)),
            chunks=len(footer.row_groups) * len(request.resolve(footer.leaves)),
            refusal=refusal,
        )


def _refusal(path: str, footer: Footer, request: FilterRequest) -> SecureBloomError | None:
    try:
        with located(path=path):
            for ordinal in request.resolve(footer.leaves):
                require_filterable(footer.leaves[ordinal])
    except SecureBloomError as error:
        return error
    return None


def check_surveys(surveys: Iterable[Survey]) -> dict[str, SecureBloomError]:
    """The files that cannot be done, each with its error.

    Raises the first refusal, and PolicyError for a column that no readable file has.
    """
    surveys = list(surveys)
    for survey in surveys:
        if survey.refusal is not None:
            raise survey.refusal
    readable = [survey for survey in surveys if survey.failure is None]
    if readable:
        everywhere = set(readable[0].missing).intersection(*(s.missing for s in readable))
        for name in sorted(everywhere):
            columns = (column for s in readable for column in s.columns)
            raise unknown_column(name, columns, (s.path for s in readable))
    return {survey.path: survey.failure for survey in surveys if survey.failure is not None}
