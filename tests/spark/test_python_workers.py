"""Imports are taken from the garbage collector's sight once, and garbage is not kept with them."""

from __future__ import annotations

import subprocess
import sys

#: A process of its own: what is frozen stays so.
_PROGRAM = """
import gc, weakref
from secure_bloom.spark.tasks import freeze_imports

class Node:
    pass

gc.disable()
circle = Node()
circle.itself = circle
gone = weakref.ref(circle)
del circle
freeze_imports()
assert gone() is None, "garbage was frozen"
first = gc.get_freeze_count()
assert first > 1000 and len(gc.get_objects()) < first / 10
later = [[] for _ in range(1000)]
freeze_imports()
assert gc.get_freeze_count() == first, "nothing was imported"
import colorsys
freeze_imports()
assert gc.get_freeze_count() > first
"""


def test_imports_are_frozen_and_garbage_is_not() -> None:
    done = subprocess.run([sys.executable, "-c", _PROGRAM], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
