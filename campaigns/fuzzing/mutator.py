"""Mutations of bytes, of texts and of Thrift trees: the same ones for the same seed."""

from __future__ import annotations

import copy
import random
from collections.abc import Callable, Sequence

from testing.thrift import trees

#: Numbers at the edges of the types that formats hold.
_EDGES = [0, 1, -1, 2, 7, 8, 127, 128, 255, 256, 32767, 65535, 2**31 - 1, 2**31, 2**32 - 1]
_EDGES += [-(2**31), 2**63 - 1, -(2**63), 2**62, 1 << 40]
#: What a text may hold and a parser may trip over.
_WORDS = ["", " ", "\0", "\n", "'", '"', "''", "(", ")", "((", "=", "==", "=\0", "[", "]", "{", "}"]
_WORDS += [",", ".", "..", "/", "//", "\\", "%", "%00", "%zz", "\u202e", "\x1b[2J", "\ud800", "𝄞"]
_WORDS += [
    "null",
    "in",
    "not",
    "and",
    "or",
    "is",
    "1e999999999",
    "-0",
    "nan",
    "inf",
    "0x1",
    "9" * 40,
]
_WORDS += ["true", "hex:", "hex:0", "2024-02-30", "9999-12-31T23:59:60Z", "key", "[kms]", "= {"]
_MOST_BYTES = 1 << 16

Mutation = Callable[[random.Random, bytearray], None]


def _flip(draw: random.Random, data: bytearray) -> None:
    data[draw.randrange(len(data))] ^= 1 << draw.randrange(8)


def _set(draw: random.Random, data: bytearray) -> None:
    data[draw.randrange(len(data))] = draw.choice((0, 1, 0x7F, 0x80, 0xFF, draw.randrange(256)))


def _cut(draw: random.Random, data: bytearray) -> None:
    start = draw.randrange(len(data))
    del data[start : start + 1 + int(draw.expovariate(0.1))]


def _double(draw: random.Random, data: bytearray) -> None:
    start = draw.randrange(len(data))
    part = data[start : start + 1 + int(draw.expovariate(0.05))]
    where = draw.randrange(len(data))
    data[where:where] = part


def _end(draw: random.Random, data: bytearray) -> None:
    del data[draw.randrange(len(data)) :]


def _number(draw: random.Random, data: bytearray) -> None:
    size = draw.choice((1, 2, 4, 8))
    number = draw.choice(_EDGES) % (1 << 8 * size)
    start = draw.randrange(len(data))
    data[start : start + size] = number.to_bytes(size, draw.choice(("little", "big")))


def _word(draw: random.Random, data: bytearray) -> None:
    start = draw.randrange(len(data))
    word = draw.choice(_WORDS).encode("utf-8", "surrogatepass")
    data[start : start + draw.choice((0, 0, 1, len(word)))] = word


_BINARY: list[Mutation] = [_flip, _flip, _set, _set, _cut, _double, _end, _number, _number]
_TEXTUAL: list[Mutation] = [_flip, _set, _cut, _double, _end, _word, _word, _word]


class Mutator:
    """Inputs made of seeds; ``is_text`` for formats that people write."""

    def __init__(self, seeds: Sequence[bytes], seed: int, *, is_text: bool = False) -> None:
        self._seeds = seeds
        self._draw = random.Random(seed)
        self._mutations = _TEXTUAL if is_text else _BINARY

    def input(self) -> bytes:
        """The next input: a seed, one to six times mutated, or two seeds joined in their midst."""
        draw = self._draw
        data = bytearray(draw.choice(self._seeds))
        if draw.random() < 0.05:
            other = draw.choice(self._seeds)
            data[draw.randrange(len(data) + 1) :] = other[draw.randrange(len(other) + 1) :]
        for _ in range(draw.choice((1, 1, 1, 2, 3, 6))):
            if not data:
                data += b"\0"
            draw.choice(self._mutations)(draw, data)
        return bytes(data[:_MOST_BYTES])

    def tree(self, tree: trees.Struct) -> trees.Struct:
        """The structure with some of its fields changed, left out, doubled or put elsewhere."""
        for _ in range(self._draw.choice((1, 1, 2, 4))):
            structs = list(_structs(tree))
            self._change(self._draw.choice(structs), structs)
        return tree

    def _change(self, struct: trees.Struct, structs: Sequence[trees.Struct]) -> None:
        draw = self._draw
        fields = list(struct.fields.items())
        if not fields:
            return
        field_id, (kind, value) = draw.choice(fields)
        roll = draw.random()
        if roll < 0.15:
            del struct.fields[field_id]
        elif roll < 0.25:
            struct.fields[draw.choice((field_id + 1, 1, 2, 3, 13, 99))] = (kind, value)
        elif roll < 0.35:
            other = draw.choice(structs).fields
            if other:
                # A copy: nothing may stand inside itself.
                struct.fields[field_id] = copy.deepcopy(draw.choice(list(other.values())))
        else:
            struct.fields[field_id] = (kind, self._value(value))

    def _value(self, value: object) -> object:
        draw = self._draw
        if isinstance(value, bool):
            return not value
        if isinstance(value, int):
            near = value + draw.choice((-1, 1, 8, -value, value))
            return draw.choice((draw.choice(_EDGES), near))
        if isinstance(value, bytes):
            data = bytearray(value or b"\0")
            draw.choice(self._mutations)(draw, data)
            return bytes(data)
        if isinstance(value, trees.Sequence) and value.items:
            items = list(value.items)
            items = draw.choice((items[:-1], items + items[:1], items * 3, items[::-1], []))
            return trees.Sequence(value.element_type, items)
        return value


def _structs(tree: trees.Struct) -> list[trees.Struct]:
    found, waiting = [], [tree]
    while waiting:
        one = waiting.pop()
        found.append(one)
        for _, value in one.fields.values():
            items = value.items if isinstance(value, trees.Sequence) else [value]
            waiting += [item for item in items if isinstance(item, trees.Struct)]
    return found
