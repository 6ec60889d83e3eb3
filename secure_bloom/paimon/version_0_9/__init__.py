"""The rules ``paimon-0.9``: whether Paimon 0.9 reads a file, even where it wrongly does not.

    reads(index, predicate, forms)        whether Paimon 0.9 reads the file
    loses_rows(index, predicate, forms)   whether it skips a file that may have such rows

Nothing else needs this package: the safe rules read no rows of a bitmap.
"""

from __future__ import annotations

from secure_bloom.paimon.version_0_9.decision import loses_rows, reads

__all__ = ["loses_rows", "reads"]
