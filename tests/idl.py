"""A reader for the few words of Thrift's IDL that ``thrift/parquet.thrift`` uses."""

from __future__ import annotations

import re
from dataclasses import dataclass

from testing.project import ROOT

IDL = ROOT / "thrift" / "parquet.thrift"

_BLOCK = re.compile(r"^(enum|struct|union) (\w+) \{(.*?)^\}", re.MULTILINE | re.DOTALL)
_FIELD = re.compile(r"^\s*(\d+): (?:(required|optional) )?(\S+) (\w+);$", re.MULTILINE)
_MEMBER = re.compile(r"^\s*(\w+) = (\d+);$", re.MULTILINE)


@dataclass(frozen=True)
class Field:
    id: int
    type: str
    required: bool


def structures() -> dict[str, dict[str, Field]]:
    """Structures and unions: name -> field name -> field."""
    return {
        name: {n: Field(int(i), t, q == "required") for i, q, t, n in _FIELD.findall(body)}
        for kind, name, body in _BLOCK.findall(IDL.read_text())
        if kind != "enum"
    }


def enums() -> dict[str, dict[str, int]]:
    """Enumerations: name -> member -> number."""
    return {
        name: {member: int(number) for member, number in _MEMBER.findall(body)}
        for kind, name, body in _BLOCK.findall(IDL.read_text())
        if kind == "enum"
    }
