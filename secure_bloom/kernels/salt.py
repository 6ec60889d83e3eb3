"""The eight odd constants of a block's mask, one for each word.

BloomFilter.md, "Technical Approach".
"""

from __future__ import annotations

from typing import Final

SALT: Final = (
    0x47B6137B,
    0x44974D91,
    0x8824AD5B,
    0xA2B7289D,
    0x705495C7,
    0x2DF1424B,
    0x9EFC4947,
    0x5C6BFB31,
)
