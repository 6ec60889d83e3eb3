"""Functions of one request: they are called with its fields, and show these as their signature.

Functions that take the same many arguments have them in one place, which mypy checks, and hand on
one object.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from inspect import Signature, signature
from typing import ParamSpec, TypeVar

_Given = ParamSpec("_Given")
_Request = TypeVar("_Request")
_Result = TypeVar("_Result")


def takes(
    request: Callable[_Given, _Request],
) -> Callable[[Callable[[_Request], _Result]], Callable[_Given, _Result]]:
    """Make a function of a ``request``, a dataclass, one of the fields of it."""

    def decorated(function: Callable[[_Request], _Result]) -> Callable[_Given, _Result]:
        @wraps(function)
        def public(*args: _Given.args, **kwargs: _Given.kwargs) -> _Result:
            try:
                asked = request(*args, **kwargs)
            except TypeError as error:
                # A caller who misspells an argument called the function, and never heard of its
                # request.
                called = str(error).replace(f"{request.__qualname__}.__init__", function.__name__)
                raise TypeError(called) from None
            return function(asked)

        # help() and notebooks show the arguments, and not that they are handed on.
        public.__signature__ = Signature(  # type: ignore[attr-defined]
            list(signature(request).parameters.values()),
            return_annotation=signature(function).return_annotation,
        )
        return public

    return decorated
