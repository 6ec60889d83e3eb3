"""Inserting into and checking a split-block Bloom filter.  BloomFilter.md, "Technical Approach".

A block is handled as one vector of eight 32-bit lanes.  numba does not vectorize so short a loop
(it leaves LLVM's SLP pass off), so ``block_insert`` and ``block_check`` are given as LLVM
instructions; as plain loops they take five times as long.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeAlias, cast

import numpy as np
from llvmlite import ir
from numba import types
from numba.core.base import BaseContext
from numba.core.typing.context import Context
from numba.core.typing.templates import Signature
from numba.extending import intrinsic
from numpy.typing import NDArray

from secure_bloom.kernels.compilation import kernel
from secure_bloom.kernels.salt import SALT

Blocks: TypeAlias = NDArray[np.uint32]
Hashes: TypeAlias = NDArray[np.uint64]
#: The result of an intrinsic: its signature, and the function that writes its instructions.
Instructions: TypeAlias = tuple[
    Signature, Callable[[BaseContext, ir.IRBuilder, Signature, list[ir.Value]], ir.Value]
]

LANES: Final = ir.VectorType(ir.IntType(32), 8)
WORD_ALIGNMENT: Final = 4  # a bytearray promises no more


def _each(value: int) -> ir.Constant:
    return ir.Constant(LANES, [value] * 8)


def _mask(builder: ir.IRBuilder, x: ir.Value) -> ir.Value:
    """``mask(x)``: lane ``i`` has exactly the bit ``(x * SALT[i]) >> 27`` set."""
    nothing = ir.Constant(LANES, ir.Undefined)
    first = builder.insert_element(nothing, x, ir.Constant(ir.IntType(32), 0))
    x_in_each = builder.shuffle_vector(first, nothing, _each(0))
    product = builder.mul(x_in_each, ir.Constant(LANES, SALT))
    return builder.shl(_each(1), builder.lshr(product, _each(27)))


def _block_pointer(
    context: BaseContext, builder: ir.IRBuilder, signature: Signature, args: list[ir.Value]
) -> ir.Value:
    """The address of the block ``args[1]`` of the array ``args[0]``, as a pointer to its lanes."""
    array = context.make_array(signature.args[0])
    words = array(context, builder, args[0]).data
    first_word = builder.mul(args[1], ir.Constant(ir.IntType(64), 8))
    return builder.bitcast(builder.gep(words, [first_word]), LANES.as_pointer())


def _block_insert(
    _typing: Context, blocks: types.Array, index: types.Integer, x: types.Integer
) -> Instructions:
    def write(
        context: BaseContext, builder: ir.IRBuilder, signature: Signature, args: list[ir.Value]
    ) -> ir.Value:
        pointer = _block_pointer(context, builder, signature, args)
        block = builder.load(pointer, align=WORD_ALIGNMENT)
        builder.store(builder.or_(block, _mask(builder, args[2])), pointer, align=WORD_ALIGNMENT)
        return context.get_dummy_value()

    return types.void(blocks, index, x), write


def _block_check(
    _typing: Context, blocks: types.Array, index: types.Integer, x: types.Integer
) -> Instructions:
    def write(
        context: BaseContext, builder: ir.IRBuilder, signature: Signature, args: list[ir.Value]
    ) -> ir.Value:
        pointer = _block_pointer(context, builder, signature, args)
        block = builder.load(pointer, align=WORD_ALIGNMENT)
        missing = builder.and_(_mask(builder, args[2]), builder.not_(block))
        as_one = builder.bitcast(missing, ir.IntType(256))
        return builder.icmp_unsigned("==", as_one, ir.Constant(ir.IntType(256), 0))

    return types.boolean(blocks, index, x), write


#: OR ``mask(x)`` into block ``index``; both of uint64 and uint32.
block_insert = cast(Callable[[Blocks, np.uint64, np.uint32], None], intrinsic(_block_insert))
#: Whether block ``index`` has every bit of ``mask(x)``.
block_check = cast(Callable[[Blocks, np.uint64, np.uint32], bool], intrinsic(_block_check))


@kernel
def block_index(h: np.uint64, z: np.uint64) -> np.uint64:
    """The block of hash ``h`` among ``z``: its upper half, scaled."""
    return ((h >> np.uint64(32)) * z) >> np.uint64(32)


@kernel
def insert_hashes(blocks: Blocks, hashes: Hashes) -> None:
    """Insert every hash; ``blocks`` is (z, 8) in C order, z >= 1."""
    z = np.uint64(blocks.shape[0])
    for h in hashes:
        block_insert(blocks, block_index(h, z), np.uint32(h))


@kernel
def check_hashes(blocks: Blocks, hashes: Hashes, found: NDArray[np.bool_]) -> None:
    """Set ``found[i]`` to whether ``hashes[i]`` may have been inserted."""
    z = np.uint64(blocks.shape[0])
    for i in range(hashes.size):
        found[i] = block_check(blocks, block_index(hashes[i], z), np.uint32(hashes[i]))
