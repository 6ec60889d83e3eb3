"""Check that a file may be believed: its signature was checked, and it keeps the policy's rules.

A file itself says whether it is encrypted and by which algorithm, and nothing authenticates these
claims. An attacker could exchange an encrypted file for a file in clear.  Only a policy says what a
file should be.  Encryption.md 5.4 and 5.5.
"""

from __future__ import annotations

import warnings
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from secure_bloom.calling.options import ALLOW_UNPROTECTED, OTHER_TABLE, FooterMode
from secure_bloom.errors import PolicyError, located
from secure_bloom.reports.text import counted, legible

if TYPE_CHECKING:
    from secure_bloom.encryption.policy import KeyPolicy

#: What brings files under a policy, in hints. The command line fills in PATH and FILE.
REENCRYPT: Final = "secure-bloom reencrypt PATH --policy FILE"
#: What brings files from a key that the policy lists as older under its own, in hints.
ROTATE: Final = "secure-bloom rotate PATH --policy FILE"
#: The end of the hint about a file that is protected less than the policy says.
AS_IT_IS: Final = f"to read it as it is: {ALLOW_UNPROTECTED}"
#: The most columns that a hint names.
_SHOWN: Final = 3
_GCM, _CTR = "AES_GCM_V1", "AES_GCM_CTR_V1"
#: The protection of a footer: a larger number is better.
_STRENGTH = {FooterMode.PLAINTEXT: 0, FooterMode.SIGNED: 1, FooterMode.ENCRYPTED: 2}
_FOOTERS = {
    FooterMode.PLAINTEXT: "a plaintext footer without a signature",
    FooterMode.SIGNED: "a plaintext footer, signed",
    FooterMode.ENCRYPTED: "an encrypted footer",
}


class UnverifiedFileWarning(UserWarning):
    """A signed footer was read without its key, so its content may be forged."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trust:
    """The requirements of one run for the files that it reads. Picklable, without keys.

    With a ``policy``, a file that is protected less than the policy says is an error, unless
    ``allow_unprotected`` is given.  ``allow_unverified`` reads a signed footer whose key is
    missing, although keys or a policy were given.
    """

    policy: KeyPolicy | None = None
    allow_unverified: bool = False
    allow_unprotected: bool = False

    #: Without it, files of an older version of a table are read, which no command changes.
    is_latest: bool = True

    def for_file(self, path: str) -> Trust:
        """Return the requirements for one file, by the rules of its table.

        Raises PolicyError for a file of no table, or of several.
        """
        policy = self.enforced_policy
        return self if policy is None else replace(self, policy=policy.for_table(path))

    def with_tables_at(self, places: Mapping[str, str]) -> Trust:
        """Return the requirements of a policy that knows the places of tables of a catalog."""
        policy = self.policy
        return self if policy is None else replace(self, policy=policy.with_tables_at(places))

    @property
    def enforced_policy(self) -> KeyPolicy | None:
        """The policy that files are checked against, or None."""
        return None if self.allow_unprotected else self.policy

    def check_footer(self, mode: FooterMode, algorithm: str | None) -> None:
        """Raise PolicyError for a footer or an algorithm that is weaker than the policy's."""
        policy = self.enforced_policy
        if policy is None:
            return
        # Weaker and not other: a file that is protected better than the policy says harms nobody.
        if _STRENGTH[mode] < _STRENGTH[policy.footer_mode]:
            raise self._weaker(
                f"the policy says {_FOOTERS[policy.footer_mode]}, the file has {_FOOTERS[mode]}"
            )
        # Nothing authenticates the algorithm's id, and pages of AES_GCM_CTR_V1 have no tag: someone
        # who changes the id to it could alter pages unnoticed.
        if algorithm == _CTR and policy.encryption.algorithm == _GCM:
            raise self._weaker(
                f"the policy says {_GCM}, the file has {_CTR}, whose pages have no tag"
            )

    def explained(self, error: PolicyError, present: Iterable[Sequence[str]]) -> PolicyError:
        """Return the error of a check. Its hint names columns of the policy that the file lacks.

        ``present`` are the columns of the file.
        """
        lacking = [] if self.policy is None else self.policy.lacking(present)
        if lacking and error.hint is not None and OTHER_TABLE in error.hint:
            names = ", ".join(map(legible, lacking[:_SHOWN])) + (", ..." * (len(lacking) > _SHOWN))
            error.hint += f"; the file has no column {names}, which the policy names"
        return error

    def key_for(self, path: Sequence[str]) -> str | None:
        """Return the master key that must protect a column, in whatever spelling engines take.

        Return None if the column may be in clear.
        """
        policy = self.enforced_policy
        return None if policy is None else policy.key_in_any_spelling(path)

    def check_column(self, path: Sequence[str], *, is_encrypted: bool) -> None:
        """Raise PolicyError for a column in clear to which the policy gives a key."""
        # The key of a column is not checked here: under a wrong key it is still not in clear.
        # `add` and `audit` look at the key.
        rule = None if is_encrypted else self.key_for(path)
        if rule is not None:
            raise self._weaker(f"the policy says key {rule}, the column is stored in clear")

    def check_shown(
        self, path: str, clear: Iterable[tuple[str, ...]], present: Collection[tuple[str, ...]]
    ) -> None:
        """Raise PolicyError if a column in clear is a sensitive column of the policy, or like one.

        Call it before writing something that shows values of the file, such as an index. ``clear``
        are the columns whose values it would show, and ``present`` all columns of the file.
        """
        if self.policy is None:
            return
        # Also with allow_unprotected: it lets values be read, and not be written once more.
        policy, columns = self.policy.for_table(path), list(clear)
        for column in columns:
            key = policy.key_for(column)
            if key is not None:
                raise PolicyError(
                    f"the policy says key {key}, the column is stored in clear",
                    hint=f"{REENCRYPT} brings files under the policy; {OTHER_TABLE}",
                    column=".".join(column),
                )
        for column, like in policy.likeness.lookalikes(columns, present).items():
            raise policy.alike_error(".".join(column), like)

    def _weaker(self, message: str) -> PolicyError:
        """Return the error of a file that is protected less than the policy says."""
        if not self.is_latest:
            hint = f"files of an older version stay as they were written: {AS_IT_IS}"
            return PolicyError(message, hint=f"{hint}; {OTHER_TABLE}")
        return PolicyError(
            message,
            hint=f"{REENCRYPT} brings files under the policy, unless somebody exchanged this one; "
            f"{OTHER_TABLE}; {AS_IT_IS}",
        )

    def check_key_length(self, place: str, bits: int) -> None:
        """Raise PolicyError for a data key with fewer bits than the policy says."""
        policy = self.enforced_policy
        # The length is known only when the key is unwrapped; nothing in the file says it.
        if policy is not None and bits < policy.encryption.data_key_bits:
            raise self._weaker(
                f"the policy says data keys of {policy.encryption.data_key_bits} bits, that of "
                f"{legible(place)} has {bits}"
            )


@contextmanager
def named_by(source: str | None) -> Iterator[None]:
    """Add the file of a policy to errors about the columns that it names.

    The hint about an unknown column, if no column is like it, says that the policy may be that of
    another table.
    """
    with located(path=source):
        try:
            yield
        except PolicyError as error:
            hint = error.hint or ""
            if source is not None and hint.startswith("there are "):
                error.hint = f"{OTHER_TABLE}; {hint}"
            raise


def warn_unverified(paths: Iterable[str]) -> None:
    """Warn, once in each run, of files whose signature was not checked."""
    unverified = list(paths)
    if not unverified:
        return
    more = f" and {counted(len(unverified) - 1, 'more file')}" if len(unverified) > 1 else ""
    # warn_explicit without a registry: the default one would show equal texts once a process, and
    # the second run over a file would be silent.
    warnings.warn_explicit(
        f"{legible(unverified[0])}{more}: the footer's signature was not checked, as its "
        "key is missing, so what is read may be forged",
        UnverifiedFileWarning,
        filename="secure_bloom",
        lineno=1,
    )
