"""What an audit checks. The request is sent to other processes, so it holds no keys."""

from __future__ import annotations

from dataclasses import dataclass

from secure_bloom.adding.request import FilterRequest
from secure_bloom.calling.options import BloomFilterOptions
from secure_bloom.encryption.access import Access, GivenKeys
from secure_bloom.encryption.policy import KeyPolicy
from secure_bloom.parquet.schema import Leaf


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """The policy's requirements for one leaf: the master key that protects it, and a filter."""

    key: str | None
    bloom: BloomFilterOptions | None


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditRequest:
    """The policy, and how much to check.

    Without ``with_keys`` the audit checks only what an outsider sees.  With ``check_values`` it
    reads some values of each column that has a filter, and looks them up in the filter.
    """

    policy: KeyPolicy
    with_keys: bool = True
    check_values: bool = False

    def key_source(self, keys: GivenKeys = None) -> GivenKeys:
        """Return the keys of an audit: the given keys, else the policy's KMS.

        Return None for an outsider's view.
        """
        if not self.with_keys:
            return None
        return Access(keys=keys, policy=self.policy).required_key_source()

    def wanted(self, leaves: tuple[Leaf, ...]) -> tuple[Wanted, ...]:
        """Return the policy's requirements for each leaf of a file."""
        blooms = FilterRequest(columns=self.policy.bloom_columns()).resolve(leaves)
        return tuple(
            Wanted(key=self.policy.key_for(leaf.path), bloom=blooms.get(ordinal))
            for ordinal, leaf in enumerate(leaves)
        )

    @property
    def has_secrets(self) -> bool:
        """Whether the policy names any sensitive column."""
        return any(rule.key is not None for rule in self.policy.columns.values())
