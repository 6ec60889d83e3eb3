"""Check arguments of public functions against the types in the signature, or raise PolicyError.

The annotations are the rule. An alias (``Paths``, ``Where``) is checked where its value is read.

If several functions share many arguments, these are the fields of one dataclass, which mypy
checks. With :func:`takes` a function takes the dataclass, but is called with its fields.
"""

from __future__ import annotations

import enum
import numbers
from collections.abc import Callable, Mapping
from dataclasses import fields
from functools import cache, wraps
from inspect import Parameter, Signature, signature, unwrap
from os import PathLike
from typing import Any, Concatenate, ParamSpec, TypeVar

from secure_bloom.errors import PolicyError

P = ParamSpec("P")
R = TypeVar("R")
E = TypeVar("E", bound=enum.Enum)
#: Called with what is done and what is to do in all, an estimate until each file was opened: column
#: chunks, files or parts, as the function says.  Calls come from any thread, one at a time.
Progress = Callable[[int, int], None]
#: One part of an annotation: whether a value is of it, and its name for people.
_Kind = tuple[Callable[[object], bool], str]


def checked_arguments(function: Callable[P, R]) -> Callable[P, R]:
    """Make ``function`` raise PolicyError for an argument that does not have its annotated type."""
    # A decorator below this one has other names of its own.
    names = unwrap(function).__code__.co_varnames
    # Types of the arguments of calls that passed: a call with them always will.
    known: set[tuple[object, ...]] = set()

    @wraps(function)
    def checked(*args: P.args, **kwargs: P.kwargs) -> R:
        types = (*map(type, args), *kwargs, *map(type, kwargs.values()))
        if types not in known:
            given = [*zip(names, args, strict=False), *kwargs.items()]
            annotations = [function.__annotations__.get(name, "object") for name, _ in given]
            for (name, value), annotation in zip(given, annotations, strict=True):
                _check(name, value, annotation)
            if all(map(_is_told_by_type, annotations)):
                known.add(types)
        return function(*args, **kwargs)

    return checked


def check_fields(record: Any) -> None:
    """Raise PolicyError for a field of a dataclass whose value does not have the annotated type."""
    kind: Any = type(record)
    annotations, by_type, known = _checked_fields(kind)
    values = [getattr(record, name) for name in annotations]
    types = tuple(map(type, values))
    if types not in known:
        for (name, annotation), value in zip(annotations.items(), values, strict=True):
            _check(name, value, annotation)
        if by_type:
            known.add(types)


@cache
def _checked_fields(kind: Any) -> tuple[dict[str, str], bool, set[tuple[type, ...]]]:
    """Return a dataclass's annotations, whether types alone decide them, and an empty cache.

    Types decide if every annotation can be checked from the type of a value. The cache remembers
    the combinations of types that were accepted.
    """
    annotations = {field.name: str(field.type) for field in fields(kind)}
    return annotations, all(map(_is_told_by_type, annotations.values())), set()


def member_of(kind: type[E], name: str, value: object) -> E:
    """Return the enum member that ``value`` is, or that ``value`` names by its name or its value.

    Raises PolicyError, which lists the texts, for anything else. ``name`` is the argument's.
    """
    if isinstance(value, kind):
        return value
    texts = {str(it.value if isinstance(it.value, str) else it.name).lower(): it for it in kind}
    found = texts.get(value.lower()) if isinstance(value, str) else None
    if found is None:
        given = repr(value) if isinstance(value, str) else f"of type {type(value).__name__}"
        raise PolicyError(f"{name} is {given}, wanted one of {', '.join(texts)}")
    return found


def _check(name: str, value: object, annotation: str) -> None:
    kinds = _kinds(annotation)
    # A loop, not any(): a read of a table checks each of its filters.
    for is_of, _ in kinds:
        if is_of(value):
            return
    if kinds:
        wanted = " or ".join(dict.fromkeys(text for _, text in kinds))
        is_path = name == "keys" and isinstance(value, str | PathLike)
        raise PolicyError(
            f"{name} is of type {type(value).__name__}, wanted {wanted}",
            hint="a keyring in a file is Keyring.load(PATH)" if is_path else None,
        )


@cache
def _is_told_by_type(annotation: str) -> bool:
    return all(is_of not in _BY_VALUE for is_of, _ in _kinds(annotation))


@cache
def _kinds(annotation: str) -> tuple[_Kind, ...]:
    """Return the checks of an annotation's parts, or () if one of them is checked elsewhere."""
    parts = annotation.split(" | ")
    if not _ELSEWHERE.isdisjoint(parts):
        return ()
    return tuple(_KINDS.get(part) or _kind(part.partition("[")[0]) for part in parts)


def _kind(name: str) -> _Kind:
    """Return the check of one type: ``Mapping[str, Item]`` is checked as a Mapping alone.

    The items are checked where they are read.
    """
    return _CONTAINERS.get(name) or _class(name.rpartition(".")[2])


def _class(name: str) -> _Kind:
    """Return the check for a class by its name, so that no class is imported for the check."""
    article = "an" if name[0] in "AEIOU" else "a"
    return lambda value: any(c.__name__ == name for c in type(value).__mro__), f"{article} {name}"


def _is_flag(value: object) -> bool:
    # numpy.bool_ was renamed to numpy.bool in numpy 2.
    return isinstance(value, bool) or type(value).__name__ in ("bool", "bool_")


def _is_whole(value: object) -> bool:
    return isinstance(value, numbers.Integral) and not isinstance(value, bool)


def _is_number(value: object) -> bool:
    return isinstance(value, numbers.Real) and not isinstance(value, bool)


def _is_mapping_of_texts(value: object) -> bool:
    return isinstance(value, Mapping) and all(
        isinstance(text, str) for pair in value.items() for text in pair
    )


def _opens_files(value: object) -> bool:
    """Return whether ``value`` can give keys. An isinstance check of a Protocol would be slow."""
    return hasattr(value, "unwrap_key") or type(value).__name__ == "ExplicitKeys"


_NONE: _Kind = (lambda value: value is None, "None")
_PATH: _Kind = (lambda value: isinstance(value, PathLike), "a Path")
_KEYS: _Kind = (
    lambda value: value is None or _opens_files(value),
    "a Keyring, ExplicitKeys or an object with wrap_key and unwrap_key",
)
_FUNCTION: _Kind = (callable, "a function")
_ITERABLE: _Kind = (lambda value: hasattr(value, "__iter__"), "several")
_KINDS: dict[str, _Kind] = {
    "None": _NONE,
    "bool": (_is_flag, "True or False"),
    "int": (_is_whole, "a whole number"),
    "float": (_is_number, "a number"),
    "str": (lambda value: isinstance(value, str), "a text"),
    "bytes": (lambda value: isinstance(value, bytes | bytearray | memoryview), "bytes"),
    "PathLike[str]": _PATH,
    "os.PathLike[str]": _PATH,
    "Mapping[str, str]": (_is_mapping_of_texts, "a mapping of texts to texts"),
    "Keys": _KEYS,
    "GivenKeys": _KEYS,
    "KmsClient": _KEYS,
    "Types": (lambda value: isinstance(value, Mapping), "a mapping of columns to types"),
    "Iterable[str]": (_ITERABLE[0], "a list of texts"),
    "Progress": _FUNCTION,
    "FileProgress": _FUNCTION,
}
#: Checks that look at more than the type of a value.
_BY_VALUE = frozenset({_KEYS[0], _ITERABLE[0], _is_mapping_of_texts})
_CONTAINERS: dict[str, _Kind] = {
    "Mapping": (lambda value: isinstance(value, Mapping), "a mapping"),
    "NDArray": _class("ndarray"),
    "Iterable": _ITERABLE,
}
#: Aliases of more than classes: the code that reads the value knows what it may be.
_ELSEWHERE = frozenset(
    {
        *("object", "Any", "Columns", "Forms", "GivenPolicy"),
        *("Names", "Paths", "Predicate", "Where"),
    }
)


_Given = ParamSpec("_Given")
_Request = TypeVar("_Request")
_Result = TypeVar("_Result")
_Self = TypeVar("_Self")


def takes(
    request: Callable[_Given, _Request],
) -> Callable[[Callable[[_Request], _Result]], Callable[_Given, _Result]]:
    """Return a decorator: a function of ``request`` becomes a function of the request's fields."""

    def decorated(function: Callable[[_Request], _Result]) -> Callable[_Given, _Result]:
        @wraps(function)
        def public(*args: _Given.args, **kwargs: _Given.kwargs) -> _Result:
            return function(_made(request, function.__name__, args, kwargs))

        _show(public, function, signature(request).parameters.values())
        return public

    return decorated


def asks(
    request: Callable[_Given, _Request],
) -> Callable[
    [Callable[[_Self, _Request], _Result]], Callable[Concatenate[_Self, _Given], _Result]
]:
    """Return a decorator that does for a method what :func:`takes` does for a function."""

    def decorated(
        method: Callable[[_Self, _Request], _Result],
    ) -> Callable[Concatenate[_Self, _Given], _Result]:
        @wraps(method)
        def public(self: _Self, /, *args: _Given.args, **kwargs: _Given.kwargs) -> _Result:
            return method(self, _made(request, method.__name__, args, kwargs))

        own = Parameter("self", Parameter.POSITIONAL_OR_KEYWORD)
        _show(public, method, (own, *signature(request).parameters.values()))
        return public

    return decorated


def _made(
    request: Callable[..., _Request], name: str, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> _Request:
    try:
        return request(*args, **kwargs)
    except TypeError as error:
        # A caller who misspells an argument called the function, and never heard of its request.
        made = getattr(request, "__qualname__", "")
        raise TypeError(str(error).replace(f"{made}.__init__", name)) from None


def _show(public: Any, function: Callable[..., Any], parameters: Any) -> None:
    """Make help() and notebooks show the fields as the arguments."""
    returned = signature(function).return_annotation
    public.__signature__ = Signature(list(parameters), return_annotation=returned)
