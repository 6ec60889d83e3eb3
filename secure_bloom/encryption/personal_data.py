"""Recognise columns that may hold personal data, by their names and by some of their values."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Collection
from itertools import pairwise
from typing import Final, NamedTuple

#: The words of a name: `customerTaxId2` has `customer`, `tax` and `id`.
_WORDS: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")


class _PersonalData(NamedTuple):
    """A kind of personal data, and how it is recognised.

    ``words`` occur in names of such columns; one after ``=`` is the whole name. A value has the
    ``form``, and ``is_one`` is true for it.
    """

    name: str
    words: frozenset[str]
    form: re.Pattern[str]
    is_one: Callable[[str], bool] = lambda _: True


# The files of a table have the same names.
@functools.lru_cache(maxsize=512)
def kind_of_name(name: str) -> str | None:
    """Return the kind of data that a column of this name should hold, or None."""
    words = [word.lower() for word in _WORDS.findall(name)]
    pairs = map("".join, pairwise(words))
    known = {*words, *pairs, "".join(["=", *words])}
    return next((kind.name for kind in _KINDS if not kind.words.isdisjoint(known)), None)


@functools.lru_cache(maxsize=512)
def kind_of_path(path: tuple[str, ...]) -> str | None:
    """Return the kind of data that a column, or its nearest parent, should hold by its name."""
    return next(filter(None, map(kind_of_name, reversed(path))), None)


def kind_of_values(values: Collection[str]) -> str | None:
    """Return the kind of data that all values are, or None."""
    # Most values have no form of any kind: one match finds out.
    if not values or not all(map(_ANY_FORM.fullmatch, values)):
        return None
    for kind in _KINDS:
        if all(kind.form.fullmatch(it) and kind.is_one(it) for it in values):
            return kind.name
    return None


def _is_iban(text: str) -> bool:
    """Return whether the check digits of ISO 13616 fit."""
    code = text.replace(" ", "")
    return int("".join(str(int(char, 36)) for char in code[4:] + code[:4])) % 97 == 1


def _is_card(text: str) -> bool:
    """Return whether the check digit of ISO/IEC 7812 fits (Luhn)."""
    digits = [int(char) for char in reversed(text) if char.isdigit()]
    doubled = (sum(divmod(2 * digit, 10)) for digit in digits[1::2])
    return 13 <= len(digits) <= 19 and (sum(digits[::2]) + sum(doubled)) % 10 == 0


_KINDS: Final = (
    _PersonalData(
        "e-mail addresses",
        frozenset({"email", "mail", "emails", "mails"}),
        re.compile(r"[^\s@]+@[^\s@]+\.[A-Za-z]{2,}"),
    ),
    _PersonalData(
        "IBANs",
        frozenset({"iban", "ibans"}),
        re.compile(r"[A-Z]{2}[0-9]{2} ?(?:[A-Z0-9] ?){11,30}"),
        _is_iban,
    ),
    _PersonalData(
        "card numbers",
        frozenset(
            {"=card", "=cards", "cardnumber", "cardno", "cardnum", "creditcard"}
            | {"pan", "ccnumber"}
        ),
        re.compile(r"[0-9]{4}[ -]?[0-9]{4}[ -]?[0-9 -]{5,13}"),
        _is_card,
    ),
    _PersonalData(
        "phone numbers",
        frozenset(
            {"phone", "telephone", "mobile", "msisdn", "fax", "phonenumber", "cellphone"}
            | {"tel", "telefon", "telefono"}
        ),
        re.compile(r"\+[1-9][0-9 ()/.-]{7,20}"),
    ),
    _PersonalData(
        "national ids",
        frozenset(
            {"ssn", "nationalid", "taxid", "passport", "socialsecurity", "nino", "aadhaar"}
            | {"pesel", "bsn", "cpf", "curp", "hetu", "steuerid", "personalid", "personnummer"}
            | {"codicefiscale"}
        ),
        # Of the United States, Brazil, the United Kingdom and Finland.
        re.compile(
            r"[0-9]{3}-[0-9]{2}-[0-9]{4}|(?:[0-9]{3}\.){2}[0-9]{3}-[0-9]{2}"
            r"|[A-Z]{2}[0-9]{6}[A-D]|[0-9]{6}[-+A][0-9]{3}[0-9A-Z]"
        ),
    ),
)
_ANY_FORM: Final = re.compile("|".join(kind.form.pattern for kind in _KINDS))
