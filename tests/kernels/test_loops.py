"""Little data is done without compiled code, much of it with."""

from __future__ import annotations

import subprocess
import sys

import pytest

BUILD = """
import sys
import numpy as np
from secure_bloom.bloom.split_block import SplitBlockBloomFilter
from secure_bloom.bloom.xxh64 import hash_fixed
values = np.arange({values})
bloom_filter = SplitBlockBloomFilter(1024)
bloom_filter.insert_fixed(values)
assert bloom_filter.check_hashes(hash_fixed(values)).all()
print("llvmlite" in sys.modules)
"""


@pytest.mark.parametrize(("values", "is_compiled"), [(10_000, False), (10_000_000, True)])
def test_compiled_code_is_loaded_for_much_data(values: int, is_compiled: bool) -> None:
    done = subprocess.run(
        [sys.executable, "-c", BUILD.format(values=values)], capture_output=True, text=True
    )
    assert (done.stdout.strip(), done.stderr) == (str(is_compiled), "")
