"""Rule out most row groups of a file at once, in the C extension: :func:`prune_together`.

This is the faster of two ways to the same answer.  The other way, step by step, is
:mod:`secure_bloom.reading.pruning.steps`.  ``docs/design/how-pruning-works.md`` compares them.
"""

from __future__ import annotations

from secure_bloom.reading.pruning.batch.batch_pruner import BatchSurvivors, prune_together

__all__ = ["BatchSurvivors", "prune_together"]
