"""Turn an error that stopped a check into a finding, which does not count as clean."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Final, Protocol, TypeVar

from secure_bloom.auditing.findings import Finding
from secure_bloom.auditing.rules import Rule
from secure_bloom.auditing.rules.key_rules import KEY_MATERIAL_UNUSABLE, NOT_AUTHENTIC
from secure_bloom.auditing.rules.policy_rules import POLICY_TABLE_UNKNOWN
from secure_bloom.auditing.rules.unchecked_rules import UNCHECKED_FEATURE, UNCHECKED_FILE
from secure_bloom.encryption.kms import KeyMisfitError
from secure_bloom.encryption.table_patterns import UnknownTableError
from secure_bloom.errors import (
    IntegrityError,
    KmsUnavailableError,
    SecureBloomError,
    UnsupportedFeatureError,
    causes,
)

#: The rule of each class of errors; the first class that fits counts.
_RULES: tuple[tuple[type[Exception], Rule], ...] = (
    (IntegrityError, NOT_AUTHENTIC),
    (UnknownTableError, POLICY_TABLE_UNKNOWN),
    (KeyMisfitError, KEY_MATERIAL_UNUSABLE),
    (UnsupportedFeatureError, UNCHECKED_FEATURE),
    (Exception, UNCHECKED_FILE),
)
#: The rules of errors that stop checks.
ERRORS: Final = tuple(rule for _, rule in _RULES)


class Subject(Protocol):
    """Anything that can return a finding with its place."""

    def finding(self, rule: Rule, what: str) -> Finding:
        """Return a finding at this place."""


S = TypeVar("S", bound=Subject)


def rule_of(error: Exception) -> Rule:
    """Return the rule for an error, by its class."""
    return next(rule for kind, rule in _RULES if isinstance(error, kind))


def raise_if_kms_failed(error: Exception) -> None:
    """Raise ``error`` if it is a KmsUnavailableError: no file can be judged while the KMS fails."""
    if isinstance(error, KmsUnavailableError):
        raise error


def error_message(error: Exception) -> str:
    """Return the message of a finding about an error.

    The text of an unforeseen error may hold values, so only its class is named.
    """
    if isinstance(error, SecureBloomError):
        return error.message
    return f"the audit failed here with an unforeseen {type(error).__name__}: please report it"


def with_causes(finding: Finding, error: Exception) -> Finding:
    """Return the finding for ``error``, with the errors that led to it."""
    return replace(finding, causes=tuple(causes(error)))


def failure(subject: Subject, error: Exception) -> Finding:
    """Return the finding for an error that stopped a check of ``subject``."""
    raise_if_kms_failed(error)
    return with_causes(subject.finding(rule_of(error), error_message(error)), error)


def file_failure(path: str | None, error: Exception) -> Finding:
    """Return the finding for an error that stopped all checks of one file, or of one folder."""
    raise_if_kms_failed(error)
    return with_causes(rule_of(error).finding(error_message(error), path=path), error)


def guarded(findings: Iterable[Finding]) -> Iterator[Finding]:
    """Yield the findings, and one more for an error that stops them."""
    try:
        yield from findings
    except Exception as error:
        path = error.path if isinstance(error, SecureBloomError) else None
        yield file_failure(path, error)


def run_checks(checks: Iterable[Callable[[S], Iterator[Finding]]], subject: S) -> Iterator[Finding]:
    """Yield all findings of all checks.

    A check that is stopped by an error does not stop the others.
    """
    for check in checks:
        try:
            yield from check(subject)
        except Exception as error:
            yield failure(subject, error)
