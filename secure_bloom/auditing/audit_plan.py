"""Plan an audit: list its files, get its keys, and read the findings that are known.

Only new findings make an audit with a baseline fail, the report of an earlier one:

    secure-bloom audit lake --policy FILE --json > last.json
    secure-bloom audit lake --policy FILE --baseline last.json

Paths are compared as places: another spelling of the same file is the same file.
"""

from __future__ import annotations

import datetime
import functools
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from os import PathLike
from pathlib import Path
from typing import Any, Final, TypeAlias

from secure_bloom.adding.request import Keys
from secure_bloom.auditing.checks import policies
from secure_bloom.auditing.checks.subjects import AuditRequest
from secure_bloom.auditing.failures import file_failure
from secure_bloom.auditing.findings import Finding, Severity
from secure_bloom.auditing.rules import RULES
from secure_bloom.auditing.rules.key_rules import COLUMN_WRONG_KEY, FOOTER_WRONG_KEY, KEY_RETIRED
from secure_bloom.auditing.scope import AuditScope, policy_digest
from secure_bloom.calling.close_names import near_file
from secure_bloom.calling.options import as_texts
from secure_bloom.encryption.configuration import close_match
from secure_bloom.encryption.kms import ExplicitKeys
from secure_bloom.encryption.policy import KeyPolicy, draft_policy
from secure_bloom.encryption.policy_tables import current
from secure_bloom.errors import PolicyError, SecureBloomError, located, refused_by_system
from secure_bloom.lakes import TableListing, TableVersion, is_in_catalog, list_tables
from secure_bloom.lakes.managed_tables import ManagedTableError
from secure_bloom.lakes.paimon.names import is_named, root_of, table_folder
from secure_bloom.lakes.table_format import TableFormat
from secure_bloom.running.bounded_documents import parsed_json, read_bounded
from secure_bloom.storage.paths import Paths, as_paths, is_object_uri, join, local_path, object_uri

_RANKS = {severity: rank for rank, severity in enumerate(Severity)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """Findings of at least ``severity`` count, except the ``ignored`` pairs of id and column.

    The column is None if the id is ignored for all columns.  ``known`` are findings of an earlier
    report, which do not count either.
    """

    severity: Severity = Severity.LOW
    ignored: frozenset[tuple[str, str | None]] = frozenset()
    known: frozenset[KnownFinding] = frozenset()

    def counts(self, finding: Finding) -> bool:
        """Return whether the finding makes an audit fail."""
        return _RANKS[finding.severity] <= _RANKS[self.severity] and not self._ignores(finding)

    def is_note(self, finding: Finding) -> bool:
        """Return whether the finding is reported as a note, which does not make an audit fail.

        It is a note if its severity is note, the audit asks for a higher severity, and it is not
        ignored.
        """
        is_note = finding.severity is Severity.NOTE and self.severity is not Severity.NOTE
        return is_note and not self._ignores(finding)

    def _ignores(self, finding: Finding) -> bool:
        if self.known and known_finding(finding) in self.known:
            return True
        return not self.ignored.isdisjoint({(finding.id, None), (finding.id, finding.column)})


def selection(ignore: Iterable[str], severity: Severity | str | None) -> Selection:
    """Return the selection from ``ID`` and ``ID:COLUMN`` texts, and the name of a severity.

    Raises PolicyError for an unknown id or severity, which would otherwise silently change nothing.
    """
    return Selection(
        severity=Severity.LOW if severity is None else _severity(severity),
        ignored=frozenset(map(_ignored, ignore)),
    )


def _severity(name: str) -> Severity:
    if name not in _RANKS:
        raise PolicyError(f"{name!r} is not a severity", hint=close_match(name, map(str, Severity)))
    return Severity(name)


def _ignored(text: str) -> tuple[str, str | None]:
    name, colon, column = text.partition(":")
    if name not in RULES:
        raise PolicyError(f"{name!r} is not the id of a finding", hint=close_match(name, RULES))
    if colon and not column:
        raise PolicyError(f"{text!r} names no column", hint=f"for every column: {name}")
    return name, column or None


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditPlan:
    """The ``files`` to be checked against ``request``, and the findings made so far.

    For an invalid policy ``request`` is None, and there are no files.  ``given`` are the paths as
    the caller gave them. ``roots`` are the given paths without tables of a catalog. ``refused`` are
    the folders that could not be listed, each with the format of the table there.  ``listed`` are
    all files found, including those that a sample leaves out. ``tables`` opens them.
    ``unknown_keys`` are master keys of the policy that the KMS lacks.  Without ``is_latest`` the
    audit is one of an older version of tables.
    """

    request: AuditRequest | None
    findings: tuple[Finding, ...]
    selection: Selection
    roots: tuple[str, ...] = ()
    given: tuple[str, ...] = ()
    refused: Mapping[str, TableFormat | None] = field(default_factory=dict)
    files: tuple[str, ...] = ()
    listed: tuple[str, ...] = ()
    tables: TableListing = field(default_factory=lambda: TableListing(paths=()))
    unknown_keys: tuple[str, ...] = ()
    is_latest: bool = True
    properties: Mapping[str, str] | None = None
    keys: Keys | None = field(default=None, repr=False)
    scope: AuditScope = field(default_factory=AuditScope)

    @property
    def all_roots(self) -> tuple[str, ...]:
        """The paths as given, and the folders of Iceberg tables, which contain old files."""
        locations = (it for table in self.tables.tables for it in table.locations)
        return tuple(dict.fromkeys((*self.roots, *locations)))


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditOptions:
    """What an audit checks, and which findings count. See :func:`secure_bloom.audit`."""

    ignore: Iterable[str] = ()
    severity: Severity | str | None = None
    sample: int | None = None
    without_keys: bool = False
    check_values: bool = False
    strict: bool = False
    baseline: str | PathLike[str] | None = None
    spark_properties: Mapping[str, str] | None = None
    at: TableVersion = field(default_factory=TableVersion)


def _places(roots: Iterable[str]) -> Iterator[str]:
    """Yield the places where files may lie beside the live ones. A table of a catalog has none."""
    for root in roots:
        if is_named(root):
            yield root_of(table_folder(root))
        elif not is_in_catalog(root):
            yield root


def plan_audit(
    paths: Paths,
    policy: KeyPolicy | str | PathLike[str],
    keys: Keys | None,
    options: AuditOptions,
) -> AuditPlan:
    """Plan an audit without reading any data file.

    Raises PolicyError if there is nothing to audit: no file, no policy, no KMS to ask.
    """
    roots = as_paths(paths)
    taken, findings = _policy(policy, as_paths(paths, to_commit=True))
    today = datetime.datetime.now(datetime.UTC).date()
    entries = () if taken is None else taken.accepted
    accepted = current(entries, today)
    findings += tuple(policies.check_accepted(entries, today))
    options = replace(options, ignore=(*as_texts("ignore", options.ignore), *accepted))
    selected = selection(options.ignore, options.severity)
    if options.baseline is not None:
        selected = replace(selected, known=known_findings(options.baseline))
    scope = replace(_scope(policy, options), accepted=accepted)
    if taken is None:
        return AuditPlan(request=None, findings=findings, selection=selected, scope=scope)
    request = AuditRequest(
        policy=taken,
        with_keys=not options.without_keys,
        check_values=options.check_values,
        strict=options.strict,
    )
    at_hand = request.key_source(keys)
    unknown: tuple[str, ...] = ()
    if at_hand is not None and not isinstance(at_hand, ExplicitKeys):
        unknown = policies.unknown_keys(taken, at_hand)
        findings += tuple(policies.check_master_keys(taken, at_hand, unknown))
    refused: list[SecureBloomError] = []
    tables = list_tables(roots, options.at, refused=refused)
    request = replace(request, policy=taken.with_tables_at(tables.places()))
    files = tables.paths
    findings += tuple(map(_refused_table, refused))
    return AuditPlan(
        request=request,
        findings=findings,
        selection=selected,
        roots=tuple(_places(roots)),
        given=tuple(roots),
        refused={it.path: getattr(it, "format", None) for it in refused if it.path is not None},
        files=_sample(files, options.sample),
        listed=files,
        tables=tables,
        unknown_keys=unknown,
        is_latest=options.at.is_latest,
        properties=options.spark_properties,
        keys=at_hand,
        scope=scope,
    )


def _refused_table(error: SecureBloomError) -> Finding:
    """Return the finding for a folder that could not be listed. The error says how it can be."""
    found = file_failure(error.path or "", error)
    if isinstance(error, ManagedTableError) and error.hint is not None:
        return replace(found, fix=error.hint)
    return found


def _scope(policy: KeyPolicy | str | PathLike[str], options: AuditOptions) -> AuditScope:
    """Return the request as the report shows it.

    It contains no key. Of Spark properties it only says that they were given.
    """
    given: dict[str, Any] = {
        "severity": None if options.severity is None else str(options.severity),
        "ignore": list(options.ignore),
        "sample": options.sample,
        "without_keys": options.without_keys,
        "check_values": options.check_values,
        "strict": options.strict,
        "baseline": None if options.baseline is None else os.fspath(options.baseline),
        "spark_properties": options.spark_properties is not None,
    }
    if isinstance(policy, KeyPolicy):
        return AuditScope(options=given)
    return AuditScope(policy=os.fspath(policy), policy_sha256=policy_digest(policy), options=given)


def _policy(
    policy: KeyPolicy | str | PathLike[str], roots: Sequence[str]
) -> tuple[KeyPolicy | None, tuple[Finding, ...]]:
    """Return the policy of an audit, and findings about it.

    If the policy has several tables and all ``roots`` are in one of them, the policy of that
    table is returned.
    """
    if not isinstance(policy, KeyPolicy):
        if not isinstance(policy, str | PathLike):
            raise PolicyError(
                f"the policy is given as {type(policy).__name__}, wanted a path or a KeyPolicy"
            )
        path = os.fspath(policy)
        draft, problems = draft_policy(path)
        if draft is not None:
            try:
                draft.check_has_rules()
            except PolicyError as error:
                draft, problems = None, (error,)
        if draft is None:
            return None, tuple(policies.check_draft(problems, path))
        policy = draft
    policy = policy.for_paths(roots)
    every = (policy, *policy.tables.values())[bool(policy.tables) :]
    found = chain.from_iterable(map(policies.check_policy, every))
    return policy, tuple(dict.fromkeys(found))


def _sample(files: Sequence[str], size: int | None) -> tuple[str, ...]:
    """Return ``size`` of the files, spread over all folders.

    The same files give the same sample.
    """
    if size is None or size >= len(files):
        return tuple(files)
    if size < 1:
        raise PolicyError(f"a sample of {size} files is asked for, wanted at least one")
    return tuple(files[i * len(files) // size] for i in range(size))


#: A finding by its id, place, row group, column and table of the policy, and one about none of
#: them by its message. The wording of others may change with a version.
KnownFinding: TypeAlias = tuple[str | int | None, ...]
#: Findings that are others if another key is found. Only their messages name it.
_BY_KEY: Final = frozenset(it.id for it in (COLUMN_WRONG_KEY, FOOTER_WRONG_KEY, KEY_RETIRED))
_NAME = "the baseline"


def known_finding(finding: Finding) -> KnownFinding:
    """Return the fields by which a finding is recognised in another report."""
    return _known(finding.to_dict())


def _place(path: str | None) -> str | None:
    """Return one spelling for all spellings of a path. A relative path begins in this folder."""
    if path is None:
        return None
    try:
        if is_object_uri(path):
            uri = object_uri(path)
            return join(uri.store(), uri.key)
        folder, name = os.path.split(local_path(path))
        return f"{_real_folder(folder)}/{name}"
    except (SecureBloomError, ValueError):
        # The address of a catalog, or no path at all.
        return path


@functools.lru_cache(maxsize=1024)
def _real_folder(folder: str) -> str:
    return os.path.realpath(folder)


def known_findings(path: str | PathLike[str]) -> frozenset[KnownFinding]:
    """Return the findings in a report of ``audit --json``, including ignored ones.

    Raises PolicyError for any other file.
    """
    with located(path=os.fspath(path)):
        try:
            with Path(path).open("rb") as file:
                document = parsed_json(read_bounded(file, _NAME), _NAME)
        except OSError as exc:
            hint = near_file(Path(path)) if isinstance(exc, FileNotFoundError) else None
            message = f"the baseline cannot be read: {exc.strerror}"
            raise refused_by_system(exc, message, hint=hint) from exc
        except (ValueError, RecursionError):
            document = None
        if not isinstance(document, dict) or not isinstance(document.get("findings"), list):
            raise PolicyError(
                "the baseline is not a report of an audit",
                hint="make it with: secure-bloom audit PATH --policy FILE --json",
            )
        every = [*document["findings"], *document.get("ignored", ())]
        return frozenset(map(_known, every))


def _known(entry: Any) -> KnownFinding:
    if not isinstance(entry, dict):
        raise PolicyError("the baseline is not a report of an audit: a finding is not an object")
    found = [entry.get(word) for word in ("id", "path", "row_group", "column", "table", "message")]
    if not all(isinstance(it, str | int | None) for it in found):
        raise PolicyError("the baseline is not a report of an audit: a finding has other fields")
    name, path, row_group, column, table, message = found
    is_placed = (path is not None or column is not None) and name not in _BY_KEY
    # A message begins with the path, as it was spelled.
    what = None if is_placed or message is None else str(message).removeprefix(f"{path}: ")
    return name, _place(path), row_group, column, table, what
