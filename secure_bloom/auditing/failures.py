"""An error that stopped a check -> the finding that says so: never a crash, never clean."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Protocol, TypeVar

from secure_bloom.auditing import rules
from secure_bloom.auditing.rules import Rule
from secure_bloom.errors import IntegrityError, SecureBloomError, UnsupportedFeatureError
from secure_bloom.findings import Finding
from secure_bloom.keys import KeyMisfitError

#: What an error is in general; the first that fits counts.
_RULES: tuple[tuple[type[SecureBloomError], Rule], ...] = (
    (IntegrityError, rules.NOT_AUTHENTIC),
    (KeyMisfitError, rules.KEY_MATERIAL_UNUSABLE),
    (UnsupportedFeatureError, rules.UNCHECKED_FEATURE),
    (SecureBloomError, rules.UNCHECKED_FILE),
)


class Subject(Protocol):
    """Anything that can say where it is."""

    def finding(self, rule: Rule, what: str) -> Finding:
        """A finding at this place."""


S = TypeVar("S", bound=Subject)


def rule_of(error: SecureBloomError) -> Rule:
    """The rule for an error that nothing better is known of."""
    return next(rule for kind, rule in _RULES if isinstance(error, kind))


def failure(subject: Subject, error: SecureBloomError) -> Finding:
    """The finding for an error that stopped a check of ``subject``."""
    return subject.finding(rule_of(error), error.message)


def run_checks(checks: Iterable[Callable[[S], Iterator[Finding]]], subject: S) -> Iterator[Finding]:
    """All findings of all checks; one that is stopped by an error does not stop the others."""
    for check in checks:
        try:
            yield from check(subject)
        except SecureBloomError as error:
            yield failure(subject, error)
