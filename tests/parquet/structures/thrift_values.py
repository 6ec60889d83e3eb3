"""Strategies for Thrift structures as trees."""

from __future__ import annotations

from hypothesis import strategies as st
from thrift.protocol.TProtocol import TType

from testing.thrift.trees import Map, Sequence, Struct

_SCALARS = {
    TType.BOOL: st.booleans(),
    TType.BYTE: st.integers(-(2**7), 2**7 - 1),
    TType.I16: st.integers(-(2**15), 2**15 - 1),
    TType.I32: st.integers(-(2**31), 2**31 - 1),
    TType.I64: st.integers(-(2**63), 2**63 - 1),
    TType.DOUBLE: st.floats(allow_nan=False),
    TType.STRING: st.binary(max_size=40),
}


def _typed(depth: int) -> st.SearchStrategy[tuple[int, object]]:
    """A Thrift type with a value of it."""
    scalars = [st.tuples(st.just(t), values) for t, values in _SCALARS.items()]
    if depth == 0:
        return st.one_of(scalars)
    below = structs(depth - 1)
    lists = [
        st.tuples(st.just(outer), st.builds(Sequence, st.just(t), st.lists(v, max_size=20)))
        for outer in (TType.LIST, TType.SET)
        for t, v in [*_SCALARS.items(), (TType.STRUCT, below)]
    ]
    pairs = st.lists(st.tuples(_SCALARS[TType.I32], below), min_size=1, max_size=3)
    maps = st.builds(Map, st.just(TType.I32), st.just(TType.STRUCT), pairs)
    return st.one_of(
        *scalars,
        *lists,
        st.tuples(st.just(TType.STRUCT), below),
        st.tuples(st.just(TType.MAP), maps),
    )


def structs(depth: int) -> st.SearchStrategy[Struct]:
    """Structures that nest so deep."""
    return st.builds(Struct, st.dictionaries(st.integers(1, 200), _typed(depth), max_size=6))
