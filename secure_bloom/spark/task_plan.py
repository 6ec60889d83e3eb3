"""Plan which files a task has: tasks of about equal bytes, by the sizes of the files.

A task costs tens of milliseconds whatever it does, so small files share one.  A large file has a
task of its own.  Tasks are in the order of their bytes, because Spark starts them in this order: a
large task that starts last would keep one core busy while the others wait.

Spark sends a row to the partition `pmod(hash(column), n)` of `repartition(n, column)`, where `hash`
of an INT is Murmur3_x86_32 with seed 42, the same in each Spark since 2.0.  So each task gets its
rows by a chosen key.  Spark 4.1 has `repartitionById`; older versions have no other way.
"""

from __future__ import annotations

import functools
import heapq
from collections.abc import Sequence

#: The cost of opening a file, in bytes of work on one.
OPENING = 512 * 1024
#: Tasks of a core: the last ones even out what the first ones took longer.
_OF_A_CORE = 3
#: Bytes that are worth a task of their own, where each core has one already.
_LEAST = 16 * 1024 * 1024
#: A job has a task for each 250 files, up to 64 tasks: a cluster may get more cores meanwhile.
_SOME, _TASKS = 250, 64
#: The most of a task, because a lost task is done again as a whole.
_MOST_FILES, _MOST_BYTES = 1000, 16 * 1024**3


def task_count(files: int, size: int, cores: int) -> int:
    """Return the number of tasks for ``files`` files of ``size`` bytes together.

    There are no fewer tasks than cores, unless there are fewer files.
    """
    work = size + files * OPENING
    even = max(cores, min(_OF_A_CORE * cores, work // _LEAST))
    bounds = (min(_TASKS, files // _SOME), -(-files // _MOST_FILES), -(-work // _MOST_BYTES))
    return min(files, max(even, *bounds))


def plan_tasks(sizes: Sequence[int], cores: int) -> list[list[int]]:
    """Return the files of each task, by their indexes in ``sizes``."""
    return evenly(sizes, task_count(len(sizes), sum(sizes), cores))


def evenly(sizes: Sequence[int], tasks: int) -> list[list[int]]:
    """Return ``tasks`` tasks of about equal bytes, the largest one first.

    Each file in turn, the largest one first, goes to the task that has the fewest bytes.  No task
    then has more than 4/3 of the bytes of the best plan's largest task (Graham's LPT rule).
    """
    # Of equally full tasks the first one is taken: equal files are dealt out in their order.
    filled: list[tuple[int, int, list[int]]] = [(0, task, []) for task in range(tasks)]
    for place in sorted(range(len(sizes)), key=lambda place: -sizes[place]):
        work, task, places = filled[0]
        places.append(place)
        heapq.heapreplace(filled, (work + sizes[place] + OPENING, task, places))
    filled.sort(key=lambda entry: (-entry[0], entry[1]))
    return [sorted(places) for _, _, places in filled if places]


_SEED = 42
_BITS = 0xFFFFFFFF


@functools.lru_cache(maxsize=16)
def shuffle_keys(partitions: int) -> tuple[int, ...]:
    """Return one key for each of ``partitions`` partitions."""
    found: dict[int, int] = {}
    key = 0
    while len(found) < partitions:
        found.setdefault(hash_of_int(key) % partitions, key)
        key += 1
    return tuple(found[partition] for partition in range(partitions))


def hash_of_int(value: int) -> int:
    """Return what Spark's `hash(value)` of an INT returns: signed, 32 bits."""
    word = _rotated(value * 0xCC9E2D51 & _BITS, 15) * 0x1B873593 & _BITS
    mixed = _rotated(_SEED ^ word, 13) * 5 + 0xE6546B64 & _BITS
    mixed ^= 4  # the length of an INT in bytes
    mixed = (mixed ^ mixed >> 16) * 0x85EBCA6B & _BITS
    mixed = (mixed ^ mixed >> 13) * 0xC2B2AE35 & _BITS
    mixed ^= mixed >> 16
    return mixed - (mixed >> 31 << 32)


def _rotated(word: int, bits: int) -> int:
    return word << bits & _BITS | word >> 32 - bits
