"""Checks of the policy itself, and of the master keys it names, before any file is read."""

from __future__ import annotations

import os
from collections.abc import Iterator

from secure_bloom.auditing import rules
from secure_bloom.auditing.findings import Finding
from secure_bloom.encryption.configuration import UnknownWordError
from secure_bloom.encryption.keys import KeyInventory, KmsClient, unwrap_with, wrap_with
from secure_bloom.encryption.policy import ColumnRule, KeyPolicy
from secure_bloom.errors import FormatError, KeyUnavailableError, PolicyError

#: A key that is wrapped and unwrapped to see that a master key can: of the shortest kind.
_TRIAL_BYTES = 16


def check_draft(problems: tuple[PolicyError, ...], path: str) -> Iterator[Finding]:
    """What is wrong in a policy that could not be taken."""
    for problem in problems:
        is_word = isinstance(problem, UnknownWordError)
        rule = rules.POLICY_UNKNOWN_WORD if is_word else rules.POLICY_INVALID
        hint = f" ({problem.hint})" if problem.hint else ""
        yield rule.finding(problem.message + hint, path=path, column=problem.column)


def check_policy(policy: KeyPolicy) -> Iterator[Finding]:
    """Rules that contradict each other: of a column, and of one that it stands in."""
    for rule in policy.columns.values():
        outer = policy.key_for(rule.path.split(".")[:-1])
        if outer is not None:
            yield from _check_inner(rule, outer)


def _check_inner(rule: ColumnRule, outer: str) -> Iterator[Finding]:
    if rule.key is None and rule.bloom is not None:
        yield rules.POLICY_FILTER_WITHOUT_KEY.finding(
            f"it asks for a filter and names no key, its parent is under {outer}", column=rule.path
        )
    elif rule.key is None:
        yield rules.POLICY_PARENT_NAMED.finding(
            f"it names no key, its parent is under {outer}", column=rule.path
        )
    elif rule.key != outer:
        yield rules.POLICY_TWO_KEYS.finding(
            f"it is under {rule.key}, its parent under {outer}", column=rule.path
        )


def check_master_keys(policy: KeyPolicy, kms: KmsClient) -> Iterator[Finding]:
    """Every master key of the policy is there, and wraps and unwraps."""
    for name in sorted(policy.master_keys()):
        if isinstance(kms, KeyInventory) and not kms.has_key(name):
            yield rules.POLICY_KEY_UNKNOWN.finding(f"the KMS has no master key {name}")
            continue
        problem = _trial(kms, name)
        if problem is not None:
            yield rules.POLICY_KEY_UNUSABLE.finding(problem)


def _trial(kms: KmsClient, name: str) -> str | None:
    """What goes wrong when a key is wrapped under a master key and unwrapped; None for nothing."""
    key = os.urandom(_TRIAL_BYTES)
    try:
        if unwrap_with(kms, wrap_with(kms, key, name), name) == key:
            return None
    except (KeyUnavailableError, FormatError) as error:
        return error.message
    return f"master key {name} unwraps another key than it wrapped"
