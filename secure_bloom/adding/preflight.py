"""Check a request against footers, so that errors of the request come before any write.

A few footers show most errors.  An error that only another file shows fails that file when its turn
comes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from secure_bloom.adding.request import FilterRequest, WantedFilters
from secure_bloom.encryption.file_keys import KeyResolver
from secure_bloom.encryption.trust import named_by
from secure_bloom.errors import SecureBloomError, located
from secure_bloom.parquet.footer.locate import read_tail
from secure_bloom.parquet.footer.opened import Footer, unlock
from secure_bloom.parquet.key_material_files import file_keys
from secure_bloom.parquet.logical_types import Kind, logical_type
from secure_bloom.parquet.schema import require_filterable, unknown_column

#: This number of files, from all over a run, shows most mistakes of its request.
_FEW: Final = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Survey:
    """The check of one file. ``chunks`` is the number of column chunks that are to have filters.

    ``table`` is the file's table, if the policy has several.
    ``missing`` are columns that it lacks and that no table's log knows.  ``without_zone`` are
    timestamps without a zone that are to have filters.  ``refusal`` is an error of
    the request itself, which stops the run. ``failure`` is an error of this file, which does not
    stop the others.
    """

    path: str
    table: str | None = None
    columns: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    without_zone: tuple[str, ...] = ()
    chunks: int = 0
    refusal: SecureBloomError | None = None
    failure: SecureBloomError | None = None


def check_few(files: Sequence[str], request: FilterRequest, resolver: KeyResolver) -> int:
    """Check a request against a few of its files. Return an estimate of the chunks in a file.

    A column that none of these files has is looked for in the others, until one has it.  Raises the
    errors of :func:`check_surveys`.
    """
    surveys: list[Survey] = []
    for own, group in request.by_table(files):
        surveys += _few_of_table(group, own, resolver)
    with named_by(request.source):
        check_surveys(surveys)
    return sum(survey.chunks for survey in surveys) // max(1, len(surveys))


def _few_of_table(
    files: Sequence[str], request: FilterRequest, resolver: KeyResolver
) -> Iterable[Survey]:
    """Return the surveys of a few files, and of more until each column was found in one."""
    # Files from all over the run: those of one day are alike, and a mistake may show in another
    # one.
    few = files[:: max(1, -(-len(files) // _FEW))]
    surveys: list[Survey] = []
    missing = set(request.wanted.columns)
    for number, path in enumerate(dict.fromkeys([*few, *files])):
        if number >= len(few) and not missing:
            break
        surveys.append(survey_file(path, request, resolver))
        if surveys[-1].failure is None:
            missing.intersection_update(surveys[-1].missing)
    return surveys


def survey_file(path: str, request: FilterRequest, resolver: KeyResolver) -> Survey:
    """Read one footer with its keys, and check the request against it.

    Never raises an error of this package.
    """
    try:
        return _survey(path, request, resolver)
    except SecureBloomError as error:
        return Survey(path=path, failure=error)


def _survey(path: str, request: FilterRequest, resolver: KeyResolver) -> Survey:
    request = request.for_file(path)
    with located(path=path), request.wanted.open(path) as file:
        # As before a write, a signature that cannot be checked is an error: it fails here, before
        # the work.
        footer = unlock(read_tail(file), file_keys(resolver, file))
        wanted = request.wanted
        try:
            ordinals = _wanted_ordinals(path, footer, wanted)
        except SecureBloomError as error:
            return Survey(path=path, refusal=error)
        if footer.row_groups:
            # One row group shows the keys; all are checked when the file is planned.
            alike = request.guard.lookalikes(footer.leaves, ordinals)
            for ordinal in ordinals:
                request.guard.check(footer.chunk(0, ordinal), like=alike.get(ordinal))
        return Survey(
            path=path,
            table=None if request.guard.policy is None else request.guard.policy.table,
            columns=tuple(leaf.name for leaf in footer.leaves),
            missing=tuple(
                name for name in wanted.missing(footer.leaves) if name not in wanted.known
            ),
            without_zone=tuple(
                leaf.name
                for leaf in (footer.leaves[ordinal] for ordinal in ordinals)
                if (logical := logical_type(leaf.element)).kind is Kind.TIMESTAMP
                and not logical.is_utc
            ),
            chunks=len(footer.row_groups) * len(ordinals),
        )


def _wanted_ordinals(path: str, footer: Footer, wanted: WantedFilters) -> list[int]:
    """Return the columns that are to have filters. Raises the errors of the request itself."""
    with located(path=path):
        ordinals = list(wanted.resolve(footer.leaves))
        for ordinal in ordinals:
            require_filterable(footer.leaves[ordinal])
    return ordinals


def check_surveys(surveys: Iterable[Survey]) -> dict[str, SecureBloomError]:
    """Return the files that cannot be processed, each with its error.

    Raises the first refusal, and PolicyError for a column that no readable file has.
    """
    surveys = list(surveys)
    for survey in surveys:
        if survey.refusal is not None:
            raise survey.refusal
    # If no file of a table can be read, nobody knows which columns there are.
    for readable in readable_by_table(surveys):
        for name in sorted(missing_in_all(readable)):
            columns = (column for s in readable for column in s.columns)
            raise unknown_column(name, columns, (s.path for s in readable))
    return {survey.path: survey.failure for survey in surveys if survey.failure is not None}


def readable_by_table(surveys: Iterable[Survey]) -> Iterable[list[Survey]]:
    """Return the surveys of files that can be read, in one list for each table."""
    found: dict[str | None, list[Survey]] = {}
    for survey in surveys:
        if survey.failure is None:
            found.setdefault(survey.table, []).append(survey)
    return found.values()


def missing_in_all(surveys: Iterable[Survey]) -> set[str]:
    """Return the columns that each of these files lacks."""
    return set.intersection(*(set(survey.missing) for survey in surveys))
