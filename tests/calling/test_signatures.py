"""A function of a request is called with its fields, and shows them."""

from __future__ import annotations

import inspect
from dataclasses import KW_ONLY, dataclass

import pytest

from secure_bloom.calling.signatures import takes


@dataclass(frozen=True)
class Order:
    name: str
    _: KW_ONLY
    pieces: int = 1


@takes(Order)
def told(order: Order) -> str:
    """What was ordered."""
    return f"{order.pieces} {order.name}"


def test_it_is_called_with_the_fields() -> None:
    assert told("pen") == told(name="pen", pieces=1) == "1 pen"
    assert told("pen", pieces=3) == "3 pen"
    for args, kwargs in [(("pen", 3), {}), ((), {}), (("pen",), {"price": 2})]:
        with pytest.raises(TypeError):
            told(*args, **kwargs)


def test_a_wrong_argument_is_told_by_the_name_of_the_function() -> None:
    with pytest.raises(TypeError, match=r"^told\(\) got an unexpected keyword argument 'price'"):
        told("pen", price=2)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match=r"^told\(\) missing 1 required positional argument"):
        told()  # type: ignore[call-arg]


def test_it_shows_the_fields_as_its_own() -> None:
    assert str(inspect.signature(told)) == "(name: 'str', *, pieces: 'int' = 1) -> 'str'"
    assert (told.__name__, told.__doc__) == ("told", "What was ordered.")
