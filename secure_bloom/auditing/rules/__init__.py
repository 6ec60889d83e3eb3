"""The table of all findings of an audit: id, severity, meaning, fix.

An id never changes its meaning; ``docs/audit.md`` shows the same table with an example of each.
"""

from __future__ import annotations

from secure_bloom.auditing.findings import Rule
from secure_bloom.auditing.rules import (
    contradiction_rules,
    filter_rules,
    key_rules,
    leak_rules,
    policy_rules,
    unchecked_rules,
)

_SUBJECTS = (
    policy_rules,
    key_rules,
    contradiction_rules,
    filter_rules,
    leak_rules,
    unchecked_rules,
)

#: Every rule by its id, in the order of the page.
RULES: dict[str, Rule] = {
    rule.id: rule
    for subject in _SUBJECTS
    for rule in vars(subject).values()
    if isinstance(rule, Rule)
}

__all__ = ["RULES", "Rule"]
