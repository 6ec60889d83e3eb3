"""Keep the garbage collector of a Python worker away from the modules that it has imported."""

from __future__ import annotations

import gc
import sys

#: The numbers of modules that this worker had when it froze its objects.
_frozen_with: set[int] = set()


def freeze_imports() -> None:
    """Hide all objects of this worker from the garbage collector, if it has imported more.

    Call this at the end of a task.  PySpark collects garbage after each task, among everything that
    was ever imported, which takes 40 to 100 ms.  Frozen objects are still freed with their last
    reference.
    """
    modules = len(sys.modules)
    if modules not in _frozen_with:
        # Frozen garbage would stay for ever.
        gc.collect()
        gc.freeze()
        _frozen_with.add(modules)
