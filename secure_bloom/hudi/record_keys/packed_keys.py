"""Record keys as bytes, one or many: UTF-8, never empty, in the order of Java's strings.

Java compares strings by UTF-16 code units, so a character above U+FFFF comes before the characters
U+E000 to U+FFFF.  In UTF-8 the latter start with the bytes EE and EF.  If these two bytes are moved
after all others, comparing bytes gives the order of Java's strings.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING

from secure_bloom.errors import PolicyError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

#: UTF-8 never has the bytes FE and FF, so the way back is safe too.
TO_JAVA_ORDER = bytes.maketrans(b"\xee\xef", b"\xfe\xff")
FROM_JAVA_ORDER = bytes.maketrans(b"\xfe\xff", b"\xee\xef")


def key_bytes(key: str) -> bytes:
    """Return the bytes to hash.

    Raises PolicyError, without the key, for a key that Hudi refuses.
    """
    if not isinstance(key, str):
        raise PolicyError(f"a record key is of type {type(key).__name__}, wanted text")
    try:
        encoded = key.encode()
    except UnicodeEncodeError:
        raise PolicyError("a record key is not Unicode text: a surrogate is unpaired") from None
    if not encoded:
        raise PolicyError("a record key is empty, which Hudi refuses")
    return encoded


def keys_bytes(keys: Iterable[str]) -> list[bytes]:
    """Return :func:`key_bytes` of each key. Raises PolicyError for a single text."""
    if isinstance(keys, str):
        raise PolicyError("record keys are one text, wanted several", hint="write [key]")
    if not hasattr(keys, "__iter__"):
        raise PolicyError(f"record keys are of type {type(keys).__name__}, wanted several texts")
    return [key_bytes(key) for key in keys]


def java_order(key: bytes) -> bytes:
    """Return bytes whose order is that of the keys as Java strings."""
    return key.translate(TO_JAVA_ORDER)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class PackedKeys:
    """Many keys, in Arrow's layout: key ``i`` is ``data[offsets[i]:offsets[i + 1]]``.

    ``offsets`` are int64, ``data`` is uint8; they come from :meth:`of` or from Arrow.
    """

    offsets: NDArray[np.int64]
    data: NDArray[np.uint8]

    def __post_init__(self) -> None:
        if (self.offsets[1:] <= self.offsets[:-1]).any():
            raise PolicyError("a record key is empty, which Hudi refuses")

    @classmethod
    def of(cls, keys: Iterable[bytes]) -> PackedKeys:
        """Return the packed form of the keys."""
        import numpy as np

        every = list(keys)
        offsets = np.fromiter(accumulate(map(len, every), initial=0), np.int64, len(every) + 1)
        return cls(offsets=offsets, data=np.frombuffer(b"".join(every), np.uint8))

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def each(self) -> Iterator[bytes]:
        """Yield the keys one by one."""
        content = self.data.tobytes()
        return (content[start:end] for start, end in pairwise(self.offsets.tolist()))

    def part(self, start: int, stop: int) -> PackedKeys:
        """Return keys ``start`` to ``stop`` without copying them."""
        return PackedKeys(offsets=self.offsets[start : stop + 1], data=self.data)
