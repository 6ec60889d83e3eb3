"""Kernels are compiled whether or not there is a place to keep them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from secure_bloom.kernels.compilation import brief_kernel, inlined, kernel


@pytest.mark.parametrize("compile_", [kernel, brief_kernel, inlined])
def test_a_function_that_cannot_be_kept_is_compiled_all_the_same(
    compile_: Callable[[Any], Any],
) -> None:
    # numba keeps nothing of a function that stands in no file.
    names: dict[str, Any] = {}
    exec("def half(x):\n    return x // 2", names)
    compiled = compile_(names["half"])
    assert compiled(np.int64(7)) == 3
    assert compiled.signatures
