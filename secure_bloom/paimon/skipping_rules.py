"""The rules by which a file is skipped: the safe ones, or those of Paimon 0.9."""

from __future__ import annotations

import enum
from collections.abc import Callable

from secure_bloom.calling.arguments import checked_arguments
from secure_bloom.paimon import index_readers, version_0_9
from secure_bloom.paimon.comparisons import Predicate, require_predicate
from secure_bloom.paimon.container import FileIndex
from secure_bloom.paimon.physical_values import Forms


class Rules(enum.StrEnum):
    """The rules that join the answers of several indexes into one."""

    #: A file is skipped only where no row of it can satisfy the predicate.
    SAFE = "safe"
    #: A file is skipped where Paimon 0.9 skips it, also where that loses rows.
    PAIMON_0_9 = "paimon-0.9"


@checked_arguments
def must_read(
    index: FileIndex, predicate: Predicate, forms: Forms, *, rules: Rules = Rules.SAFE
) -> bool:
    """Return whether the file may hold rows that satisfy ``predicate``. False is certain.

    With the rules of Paimon 0.9 the answer is whether Paimon reads the file, and False is not
    certain.  Raises FormatError for a damaged index, PolicyError for an object that is no
    predicate, and UnsupportedFeatureError if a column of the predicate has an index of a type that
    Paimon does not have.
    """
    require_predicate(predicate)
    return _DECISIONS[rules](index, predicate, forms)


_DECISIONS: dict[Rules, Callable[[FileIndex, Predicate, Forms], bool]] = {
    Rules.SAFE: index_readers.may_match,
    Rules.PAIMON_0_9: version_0_9.reads,
}
