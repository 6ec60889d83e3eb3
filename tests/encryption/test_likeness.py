"""Which columns are taken for a sensitive column of the policy."""

from __future__ import annotations

import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from secure_bloom.encryption.likeness import Likeness, column_levels, plain_name


def like(rule: str, path: str, *, present: tuple[str, ...] | None = None) -> bool:
    others = [tuple(it.split(".")) for it in (present if present is not None else (rule, path))]
    found = Likeness([rule], [rule]).lookalikes([tuple(path.split("."))], others)
    return bool(found)


SAME = [
    ("email", "Email"),
    ("email", "EMAIL"),
    ("Person.SSN", "person.ssn"),
    ("person", "PERSON.ssn"),
    ("tags.list.element", "tags.list.item"),
    ("tags.list.element", "Tags.BAG.array_element"),
    ("tags.list.element", "tags.array"),
    ("tags.list.element", "tags.tags_tuple"),
    ("tags.bag.array", "tags.list.element"),
    ("rows.list.element.ssn", "rows.bag.array_element.SSN"),
    ("m.key_value.value", "m.entries.values"),
    ("m.map.key", "M.key_value.KEY"),
    ("m.key_value.value.list.element", "m.map.value.bag.array"),
    ("stra\N{LATIN SMALL LETTER SHARP S}e", "STRASSE"),
]


@pytest.mark.parametrize(("rule", "path"), SAME)
def test_what_engines_take_for_one_column_is_one(rule: str, path: str) -> None:
    assert Likeness([rule], [rule]).same_column(path.split(".")) == rule
    assert like(rule, path)


LOOKALIKES = [
    ("email", "e_mail"),
    ("email", "\u0435mail"),  # Cyrillic
    ("email", "em\u0251il"),  # alpha of phonetics
    ("email", "\u0395mail"),  # Greek, a capital
    ("email", "\u13acmail"),  # Cherokee
    ("email", "\uff45mail"),  # wide
    ("email", "\U0001d5be\U0001d5c6\U0001d5ba\U0001d5c2\U0001d5c5"),  # of mathematics
    ("email", "emai\u2113"),  # a script letter
    ("email", "emaiI"),  # a capital I for a small l
    ("email", "emai1"),
    ("phone", "ph0ne"),
    ("phone", "ph\u0585ne"),  # Armenian
    ("email", "e\u200bmail"),  # no width
    ("email", "em\u00adail"),  # a soft hyphen
    ("email", "email\ufe0f"),  # a variation selector
    ("email", "\u202eemail"),  # a direction
    ("email", "em\u3164ail"),  # a letter that shows as nothing
    ("email", "em\u034fail"),
    ("email", "\u00e9mail"),
    ("ssn", "SS\u039d"),
    ("iban", "\u0399\u0392\u0391\u039d"),  # Greek capitals, the first of which looks like l too
    ("email", "\ua4f0\ua4df\ua4ee\ua4f2\ua4e1"),  # Lisu
    ("email", "\u1d07\u1d0d\u1d00\u026a\u029f"),  # small capitals
    ("email", "emai\u0142"),  # a stroke, which no normal form takes away
    ("email", "\U0001f154mail"),  # a circle
    ("email", "\U0001f1eamail"),  # half of a flag
    ("email", "\u202eliame"),  # from right to left
    ("email", "ernail"),
    ("email", "emai|"),
    ("email", "emial"),
    ("email", "emails"),
    ("email", "before.Email"),
    ("customer.email", "customer_email"),
    ("tags.list.element", "Tag_s.list.item"),
]


@pytest.mark.parametrize(("rule", "path"), LOOKALIKES)
def test_what_people_take_for_the_column_is_like_it(rule: str, path: str) -> None:
    assert like(rule, path)
    assert Likeness([rule], [rule]).same_column(path.split(".")) is None


@pytest.mark.parametrize(
    ("rule", "path"),
    [
        ("email", "city"),
        ("id", "di"),
        ("address.email", "e-mail"),
        ("\N{OLD KEY}", "\N{LOCK}"),
        ("key", "m.key_value.key"),
        ("ssn", "ssns"),
        ("person.ssn", "person.city"),
        ("x101", "x110"),
        ("line_12", "Line_21.list.element"),
        ("rows.x123", "rows.x132"),
    ],
)
def test_another_column_is_not(rule: str, path: str) -> None:
    assert not like(rule, path)
    assert Likeness([rule], [rule]).is_named(path.split(".")) is None


def test_a_similar_name_counts_only_if_the_file_lacks_the_column() -> None:
    assert like("telephone", "telefone", present=("telefone",))
    assert not like("telephone", "telefone", present=("telefone", "telephone"))


def test_a_rule_for_the_very_column_ends_the_likeness() -> None:
    likeness = Likeness(["email", "Email"], ["email"])
    assert likeness.same_column(["Email"]) is None
    assert likeness.lookalikes([("Email",), ("EMAIL",)], []) == {("EMAIL",): "email"}


def test_levels_of_lists_and_maps_are_no_names() -> None:
    assert column_levels(["a", "list", "element", "b"]) == ("a", "element", "b")
    assert column_levels(["a", "b_tuple"]) == ("a", "b_tuple")
    assert plain_name(["E_Mail"]) == plain_name(["email"])


@given(st.text(min_size=1).filter(lambda it: "." not in it), st.integers(0, 30))
def test_a_name_is_like_itself_however_it_is_set(name: str, at: int) -> None:
    spelt = Likeness([name], [name])
    if name.upper().casefold() == name.casefold() and name.upper() != name:
        assert spelt.same_column([name.upper()]) == spelt.is_named([name.upper()]) == name
    if any(map(str.isalnum, name)):
        assert spelt.is_named([f"{name[:at]}\u200b{name[at:]}"]) == name


def test_it_travels_as_its_names_alone() -> None:
    names = [f"column_{number}" for number in range(100)]
    sent = pickle.dumps(Likeness(names, names))
    assert len(sent) < 60 * len(names)
    assert pickle.loads(sent).same_column(["COLUMN_7"]) == "column_7"
