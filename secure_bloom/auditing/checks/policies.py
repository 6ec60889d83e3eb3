"""Check the policy itself, and the master keys that it names, before any file is read."""

from __future__ import annotations

import datetime
from collections.abc import Collection, Iterable, Iterator
from dataclasses import replace

from secure_bloom.auditing.failures import with_causes
from secure_bloom.auditing.findings import Finding
from secure_bloom.auditing.rules.policy_rules import (
    POLICY_FILTER_WITHOUT_KEY,
    POLICY_IGNORE_EXPIRED,
    POLICY_INVALID,
    POLICY_KEY_UNKNOWN,
    POLICY_KEY_UNUSABLE,
    POLICY_PARENT_NAMED,
    POLICY_TWO_KEYS,
    POLICY_UNKNOWN_WORD,
)
from secure_bloom.encryption.configuration import UnknownWordError
from secure_bloom.encryption.kms import KeyInventory, KmsClient, try_master_key
from secure_bloom.encryption.policy import KeyPolicy
from secure_bloom.encryption.policy_tables import AcceptedFinding, ColumnRule, expired
from secure_bloom.errors import PolicyError


def check_draft(problems: tuple[PolicyError, ...], path: str) -> Iterator[Finding]:
    """Yield findings for the mistakes in an invalid policy."""
    for problem in problems:
        is_word = isinstance(problem, UnknownWordError)
        rule = POLICY_UNKNOWN_WORD if is_word else POLICY_INVALID
        hint = f" ({problem.hint})" if problem.hint else ""
        yield rule.finding(problem.message + hint, path=path, column=problem.column)


def check_policy(policy: KeyPolicy) -> Iterator[Finding]:
    """Check that the rule for a column and the rule for its parent do not contradict each other."""
    for rule in policy.columns.values():
        parts = rule.path.split(".")
        outer = policy.own_key_for(parts[:-1])
        if outer is not None:
            paths = {".".join(parts[:length]) for length in range(1, len(parts) + 1)}
            # A mistake in the rules of all tables is one mistake.
            is_own = not policy.shared.issuperset(paths & policy.columns.keys())
            table = policy.table if is_own else None
            yield from (replace(it, table=table) for it in _check_inner(rule, outer))


def _check_inner(rule: ColumnRule, outer: str) -> Iterator[Finding]:
    if rule.key is None and rule.bloom is not None:
        yield POLICY_FILTER_WITHOUT_KEY.finding(
            f"it asks for a filter and names no key, its parent is under {outer}", column=rule.path
        )
    elif rule.key is None:
        yield POLICY_PARENT_NAMED.finding(
            f"it names no key, its parent is under {outer}", column=rule.path
        )
    elif rule.key != outer:
        yield POLICY_TWO_KEYS.finding(
            f"it is under {rule.key}, its parent under {outer}", column=rule.path
        )


def check_accepted(accepted: Iterable[AcceptedFinding], today: datetime.date) -> Iterator[Finding]:
    """Yield a note for each accepted finding whose last day is in the past."""
    yield from map(POLICY_IGNORE_EXPIRED.finding, expired(accepted, today))


def unknown_keys(policy: KeyPolicy, kms: KmsClient) -> tuple[str, ...]:
    """Return the master keys of the policy that a KMS says it does not have."""
    if not isinstance(kms, KeyInventory):
        return ()
    return tuple(name for name in sorted(policy.master_keys()) if not kms.has_key(name))


def check_master_keys(
    policy: KeyPolicy, kms: KmsClient, unknown: Collection[str]
) -> Iterator[Finding]:
    """Yield a finding for each master key that the KMS lacks or that fails a test.

    ``unknown`` are the keys that it lacks. The others must wrap and unwrap a test key.
    """
    for name in sorted(policy.master_keys()):
        if name in unknown:
            yield POLICY_KEY_UNKNOWN.finding(f"the KMS has no master key {name}")
            continue
        problem = try_master_key(kms, name)
        if problem is not None:
            yield with_causes(POLICY_KEY_UNUSABLE.finding(problem.message), problem)
