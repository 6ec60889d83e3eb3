"""The loops as functions of C: their arguments, and that they need nothing of numba."""

from __future__ import annotations

import ctypes

import pytest
from numba import types

from secure_bloom.kernels import entry_points
from secure_bloom.kernels.entry_points import entry_point
from secure_bloom.kernels.kept_code import kept_object, object_code
from secure_bloom.kernels.machine_code import PROTOTYPES

_OF_C = {types.void: None, types.int64: ctypes.c_int64}


@pytest.mark.parametrize("name", PROTOTYPES)
def test_caller_and_function_mean_the_same_arguments(name: str) -> None:
    signature, _ = entry_points._FUNCTIONS[name]
    kinds = [signature.return_type, *signature.args]
    assert [_OF_C.get(kind, ctypes.c_void_p) for kind in kinds] == list(PROTOTYPES[name])


@pytest.mark.parametrize("name", PROTOTYPES)
def test_a_process_without_numba_can_link_it(name: str) -> None:
    if kept_object(name) is None:
        assert object_code(name, entry_point(name)) is not None
