"""Find columns in clear that are sensitive by another name: another spelling, or an older name.

A table may drop or rename a column. Its files keep it under their own name or id, and a schema in
the table's metadata still says what it was called.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from itertools import islice

from secure_bloom.auditing.checks.column_keys import check_under
from secure_bloom.auditing.checks.subjects import ChunkSubject, Findings, FooterSubject
from secure_bloom.auditing.naming import secret_named
from secure_bloom.auditing.rules.key_rules import COLUMN_ALIKE, COLUMN_IN_CLEAR
from secure_bloom.errors import UnsupportedFeatureError
from secure_bloom.parquet.schema import renamed_leaves

#: The most columns in clear that are compared, each with every rule.
_MOST_COMPARED = 2_000


def check_spelling(subject: FooterSubject) -> Findings:
    """Check that no column in clear, at any depth, has a name like a sensitive column's."""
    clear = dict.fromkeys(chunk.leaf.path for chunk in subject.chunks if not chunk.is_sensitive)
    present = {leaf.path for leaf in subject.footer.leaves}
    alike = subject.of.request.policy.likeness.lookalikes(islice(clear, _MOST_COMPARED), present)
    for path, secret in alike.items():
        yield subject.of.finding(
            COLUMN_ALIKE,
            f"the policy has {secret}; this column, stored in clear, is spelt like it or is inside "
            "a column that is",
            column=".".join(path),
        )


def check_older_names(subject: FooterSubject) -> Findings:
    """Check that a column is protected if it was sensitive under another name.

    Other names are the older names, and the name in the file itself. A column is protected if it is
    not in clear, and its key is the key of the other name.
    """
    policy = subject.of.request.policy
    # A rule for the column's present name is about this very column.
    unruled: dict[tuple[str, ...], list[ChunkSubject]] = {}
    for chunk in subject.chunks:
        if chunk.wanted.key is None and chunk.leaf.name not in policy.columns:
            unruled.setdefault(chunk.leaf.path, []).append(chunk)
    found: dict[tuple[str, ...], dict[str, None]] = {}
    for ordinal, path in _other_names(subject) if unruled else ():
        shown = subject.footer.leaves[ordinal].path
        secret = secret_named(path, policy) if shown in unruled else None
        if secret is not None:
            found.setdefault(shown, {})[secret] = None
    for shown, secrets in found.items():
        clear = [chunk for chunk in unruled[shown] if not chunk.is_encrypted]
        for secret in secrets if clear else ():
            name = clear[0].leaf.name
            what = f"the column is stored in clear; it is {name} now, and had this name before"
            yield subject.of.finding(COLUMN_IN_CLEAR, what, column=secret)
        keys = {policy.key_for(secret.split(".")) for secret in secrets}
        for chunk in unruled[shown] if len(keys) == 1 else ():
            if chunk.is_encrypted:
                yield from check_under(chunk, *keys)


def _other_names(subject: FooterSubject) -> Iterator[tuple[int, tuple[str, ...]]]:
    """Yield the names of columns in the file and in older schemas, each with its ordinal."""
    footer = subject.footer
    has_other_names = subject.of.tail.column_names is not None
    for ordinal, leaf in enumerate(footer.leaves):
        if has_other_names and leaf.stored_path is not None:
            yield ordinal, leaf.stored_path
    for names in subject.of.run.older_names(subject.of.file.path):
        # A file without ids of fields has no column that an older schema could name.
        with suppress(UnsupportedFeatureError):
            older = renamed_leaves(footer.scan.schema.elements, names)
            yield from ((ordinal, leaf.path) for ordinal, leaf in enumerate(older))
