"""The compiled loops that build filters, called as functions of C.

Each does what the one of its name in :mod:`.uncompiled` does, with the same result.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Protocol

import numpy as np
from numpy.typing import NDArray

from secure_bloom.kernels.kept_code import Linked, keep_object, kept_object, object_code
from secure_bloom.kernels.uncompiled import Blocks, Bytes, Hashes

#: Calls on fewer bytes keep Python's lock: to hand it to another thread and back takes longer.
_BRIEF: Final = 128 * 1024
#: Width in bytes -> the word that values of it are read as.
_WORDS: Final = {4: np.uint32, 8: np.uint64, 12: np.uint32, 16: np.uint64}

_ADDRESS, _INT = ctypes.c_void_p, ctypes.c_int64
#: The result and the arguments of each function of :func:`.entry_points.entry_point`.
PROTOTYPES: Final[Mapping[str, tuple[Any, ...]]] = {
    **{f"hash_{width}": (None, _ADDRESS, _ADDRESS, _INT) for width in _WORDS},
    "hash_rows": (None, _ADDRESS, _INT, _ADDRESS, _INT),
    "hash_spans_int32": (None, _ADDRESS, _INT, _ADDRESS, _INT, _ADDRESS, _INT),
    "hash_spans_int64": (None, _ADDRESS, _INT, _ADDRESS, _INT, _ADDRESS, _INT),
    "insert_hashes": (None, _ADDRESS, _INT, _ADDRESS, _INT),
    "check_hashes": (None, _ADDRESS, _INT, _ADDRESS, _ADDRESS, _INT),
    "byte_array_offsets": (_INT, _ADDRESS, _INT, _ADDRESS, _INT),
    "count_level": (_INT, _ADDRESS, _INT, _INT, _INT, _INT),
}


class CompiledLoops:
    """The loops of a process: each is linked, or compiled and then kept, for its first call."""

    def __init__(self) -> None:
        self._functions: dict[str, _Function] = {}
        self._turn = threading.Lock()

    def hash_rows(self, rows: Bytes, hashes: Hashes) -> None:
        """Hash the rows of ``rows``, which is (n, width)."""
        size, width = rows.nbytes, rows.shape[1]
        word = _WORDS.get(width)
        plain = _plain(rows if word is None else rows.view(word))
        if word is None:
            self._call("hash_rows", size, _at(plain), width, _at(hashes), len(hashes))
        else:
            self._call(f"hash_{width}", size, _at(plain), _at(hashes), len(hashes))

    def hash_spans(self, offsets: NDArray[Any], prefix: int, data: Bytes, hashes: Hashes) -> None:
        """Hash ``data[offsets[i] + prefix:offsets[i + 1]]`` into ``hashes[i]``; checked before."""
        name, size, count = f"hash_spans_{offsets.dtype.name}", data.nbytes, len(hashes)
        starts, plain = _plain(offsets), _plain(data)
        self._call(name, size, _at(starts), prefix, _at(plain), size, _at(hashes), count)

    def insert_hashes(self, blocks: Blocks, hashes: Hashes) -> None:
        """Insert every hash; ``blocks`` is (z, 8) in C order, z >= 1."""
        name, size, plain = "insert_hashes", hashes.nbytes, _plain(hashes)
        self._call(name, size, _at(blocks), len(blocks), _at(plain), len(hashes))

    def check_hashes(self, blocks: Blocks, hashes: Hashes, found: NDArray[np.bool_]) -> None:
        """Set ``found[i]`` to whether ``hashes[i]`` may have been inserted."""
        name, size, plain = "check_hashes", hashes.nbytes, _plain(hashes)
        self._call(name, size, _at(blocks), len(blocks), _at(plain), _at(found), len(hashes))

    def byte_array_offsets(self, data: Bytes, offsets: NDArray[np.int64]) -> int:
        """See :func:`.loops.byte_array_offsets`."""
        name, size, plain = "byte_array_offsets", data.nbytes, _plain(data)
        return int(self._call(name, size, _at(plain), size, _at(offsets), len(offsets)))

    def count_level(self, data: Bytes, bit_width: int, wanted: int, values: int) -> int:
        """See :func:`.loops.count_level`."""
        name, size, plain = "count_level", data.nbytes, _plain(data)
        return int(self._call(name, size, _at(plain), size, bit_width, wanted, values))

    def _call(self, name: str, size: int, *arguments: int) -> Any:
        """Call a function that works on so many bytes; whoever calls holds the arrays."""
        function = self._functions.get(name) or self._loaded(name)
        return (function.holding if size < _BRIEF else function.releasing)(*arguments)

    def _loaded(self, name: str) -> _Function:
        with self._turn:
            if name not in self._functions:
                self._functions[name] = _Function.at(name, _code(name))
            return self._functions[name]


class _Code(Protocol):
    """A function at its address, as long as this lives."""

    address: int


@dataclass(frozen=True, slots=True, kw_only=True)
class _Function:
    """A function as one that keeps Python's lock, and as one that releases it."""

    code: _Code
    holding: Callable[..., Any]
    releasing: Callable[..., Any]

    @classmethod
    def at(cls, name: str, code: _Code) -> _Function:
        """The function of that name, whose code is this."""
        holding = ctypes.PYFUNCTYPE(*PROTOTYPES[name])(code.address)
        releasing = ctypes.CFUNCTYPE(*PROTOTYPES[name])(code.address)
        return cls(code=code, holding=holding, releasing=releasing)


def _code(name: str) -> _Code:
    kept = kept_object(name)
    if kept is not None:
        return Linked(name, kept)
    from secure_bloom.kernels.entry_points import entry_point

    compiled: _Code = entry_point(name)
    content = object_code(name, compiled)
    if content is not None:
        keep_object(name, content)
    return compiled


def _plain(array: NDArray[Any]) -> NDArray[Any]:
    """The array as the loops read it: aligned, and in C order."""
    flags = array.flags
    if flags.c_contiguous and flags.aligned:
        return array
    return np.require(array, requirements=["C", "A"])


def _at(array: NDArray[Any]) -> int:
    """Where the array's first element stands."""
    return array.ctypes.data


#: Those of this process.
compiled_loops: Final = CompiledLoops()
