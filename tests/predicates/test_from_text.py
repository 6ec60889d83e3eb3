"""Conditions as people type them."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
import pytest

from secure_bloom.errors import PolicyError
from secure_bloom.predicates.from_text import from_text
from secure_bloom.predicates.from_tuples import from_structure
from secure_bloom.predicates.tree import AllOf, AnyOf, Condition, Operator
from testing.growth import calls, growth


def one(column: str, operator: Operator, *values: object) -> Condition:
    return Condition(column=column, operator=operator, values=values)


MAPPING = "`where` as a mapping: each column name maps to a value or a list of values"
A = one("a", Operator.EQUAL, "1")
B = one("b", Operator.EQUAL, "2")
C = one("c", Operator.EQUAL, "3")


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("a = 1", A),
        ("a=1", A),
        ("a == '1'", A),
        ("a = 'it''s'", one("a", Operator.EQUAL, "it's")),
        ('"a b" <> -1.5e3', one("a b", Operator.NOT_EQUAL, "-1.5e3")),
        ('"or" >= 2024-03-01', one("or", Operator.GREATER_OR_EQUAL, "2024-03-01")),
        ("a.b < 2024-03-01T10:00:00Z", one("a.b", Operator.LESS, "2024-03-01T10:00:00Z")),
        ("a IN (1, 'two')", one("a", Operator.IN, "1", "two")),
        ("a not in (1)", one("a", Operator.NOT_IN, "1")),
        ("a is null", one("a", Operator.IS_NULL)),
        ("a Is Not Null", one("a", Operator.IS_NOT_NULL)),
        ("not a = 1", one("a", Operator.NOT_EQUAL, "1")),
        ("not a < 1", one("a", Operator.NOT_LESS, "1")),
        ("not (a = 1 and b is null)", None),
        ("a = 1 or b = 2 and c = 3", AnyOf(parts=(A, AllOf(parts=(B, C))))),
        ("(a = 1 or b = 2) and c = 3", AllOf(parts=(AnyOf(parts=(A, B)), C))),
        ("a = 1 and b = 2 and c = 3", AllOf(parts=(A, B, C))),
    ],
)
def test_a_text_says_what_it_looks_like(text: str, wanted: object) -> None:
    if wanted is None:
        parts = (one("a", Operator.NOT_EQUAL, "1"), one("b", Operator.IS_NOT_NULL))
        wanted = AnyOf(parts=parts)
    assert from_text(text) == wanted


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "the condition is empty"),
        ("  ", "the condition is empty"),
        ("a = \u2018secret\u2019", "a typographic quote at character 5"),
        ("`a` = 1", "a backtick at character 1"),
        ("a not like '%secret'", "like is answered for a beginning alone"),
        ("a like 'sec_ret%'", "like is answered for a beginning alone"),
        ("a like 'sec\\%ret%'", "like is answered for a beginning alone"),
        ("a like 'a' escape 'b'", "and, or, or the end at character 12"),
        ("a like null", "a value at character 8"),
        ("a between 1 or 2", "and at character 13"),
        ("a b", "an operator at character 3"),
        ("a not = 1", "in, like, ilike or between at character 7"),
        ("lower(a) = 'secret'", "a function at character 1"),
        ("'secret'", "an operator at character 9"),
        ("'secret' = 'secret'", "the name of a column at character 12"),
        ("a = 'secret'::date", "the value before character 15 is not of the type date"),
        ("a = '1.5'::int", "not of the type int"),
        ("a = 'secret'::money", "the type at character 15"),
        ("a = date 'secret'", "not of the type date"),
        ("a = cast('secret' date)", "as at character 19"),
        ("a > current_date - 'secret'", "interval at character 20"),
        ("a > current_date - interval 'secret'", "no interval can be added"),
        ("a > 1 - interval '1 day'", "no interval can be added"),
        ("a > interval '1 month'", "no interval of weeks, days"),
        ("a > interval 'secret'", "at character 5"),
        ("a > interval '1.5' day", "a fraction and its unit apart at character 20"),
        ("a > current_date - interval '1.5' day", "a fraction and its unit apart"),
        ("a = ", "a value at character 5"),
        ("a = secret", "the value at character 5 is not in quotes"),
        ("a in ('x', secret)", "the value at character 12 is not in quotes"),
        ("a = 'secret' b", "and, or, or the end at character 14"),
        ("a = (secret)", "a value at character 5"),
        ("a in ()", "a value at character 7"),
        ("a in ('secret'", ") at character 15"),
        ("a = 'secret", "cannot be read from character 5"),
        ("(a = 1", ") at character 7"),
        ("a is 1", "null, true or false at character 6"),
        ("a not in (1, null)", "not in a list with null is never true"),
        ("not a in (1, null)", "not in a list with null is never true"),
        ("a = null", "a value at character 5"),
        ("not " * 101 + "a = 1", "nests deeper than 100"),
        ("(" * 101 + "a = 1" + ")" * 101, "nests deeper than 100"),
    ],
)
def test_a_text_that_is_none_is_refused_with_its_place(text: str, message: str) -> None:
    with pytest.raises(PolicyError) as caught:
        from_text(text)
    assert message in str(caught.value)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "hint"),
    [("a = 1 limit 3", "--limit"), ("a = 1 LIMIT 3", "--limit"), ("a = 1 order by a", "sorted")],
)
def test_what_follows_a_condition_in_sql_has_a_hint(text: str, hint: str) -> None:
    with pytest.raises(PolicyError) as caught:
        from_text(text)
    assert hint in str(caught.value.hint)


@pytest.mark.parametrize(
    ("structure", "wanted"),
    [
        ({"a": "1"}, A),
        ({"a": "1", "b": "2"}, AllOf(parts=(A, B))),
        ({"a": ["1", "2"]}, one("a", Operator.IN, "1", "2")),
        ({"a": np.array(["1"])}, one("a", Operator.IN, "1")),
        ([{"a": "1"}, ("b", "=", "2")], AllOf(parts=(A, B))),
        (("or", {"a": "1"}, {"b": "2", "c": "3"}), None),
        (("a", "like", "x%"), from_text("a like 'x%'")),
        (("a", "NOT like", "x%"), from_text("not a like 'x%'")),
        (("a", "=", "1"), A),
        ([("a", "=", "1")], A),
        ([("a", "=", "1"), ("b", "=", "2")], AllOf(parts=(A, B))),
        ([[("a", "=", "1")], [("b", "=", "2"), ("c", "=", "3")]], None),
        (("or", ("a", "=", "1"), [("b", "=", "2"), ("c", "=", "3")]), None),
        (("and", "=", "1"), one("and", Operator.EQUAL, "1")),
        (("a", "Not  In", {"1"}), one("a", Operator.NOT_IN, "1")),
        (("a", "is null"), one("a", Operator.IS_NULL)),
        (("not", ("a", "<", "1")), one("a", Operator.NOT_LESS, "1")),
        (("not", "is null"), one("not", Operator.IS_NULL)),
    ],
    ids=str,
)
def test_a_structure_says_what_it_looks_like(structure: object, wanted: object) -> None:
    either = AnyOf(parts=(A, AllOf(parts=(B, C))))
    assert from_structure(structure) == (either if wanted is None else wanted)


@pytest.mark.parametrize(
    ("structure", "message", "hint"),
    [
        ({}, "the condition is empty", "leave `where` out"),
        ({"a": None}, "column a: = with null is never true", "is null"),
        (
            {"a": {"b": "secret"}},
            "`where` as a mapping: each column name maps to a value or a list of values",
            "customer.zip",
        ),
        ({1: "secret"}, MAPPING, "customer.zip"),
        (("a", "like", 5), "column a: like takes a text", "'abc%'"),
        ([], "the condition is empty", "leave `where` out"),
        ((), "the condition is empty", "leave `where` out"),
        ([[]], "the condition is empty", "leave `where` out"),
        (("and",), "'and' is followed by no condition", '("and", ..., ...)'),
        (("a", "="), "column a: = needs a value", '("column", "=", value)'),
        (("a", "in"), "column a: in needs a value", '("column", "=", value)'),
        (("a", "=", ["secret"]), "column a: = takes one value", '("column", "in", [...])'),
        (("a", "=", None), "column a: = with null is never true", "is null"),
        (("not", ("a", "=", "1"), ("b", "=", "2")), "'not' takes one condition", '("not", ('),
        (("a", "not in", ["1", None]), "column a: not in a list with null is never true", "remove"),
        (("not", ("a", "in", [None])), "column a: not in a list with null is never true", "remove"),
        (("a",), "a tuple of 1 is no condition", '("column", "=", value)'),
        ([("a", "=", "secret", 1)], "a tuple of 4 is no condition", '("column", "=", value)'),
        (["a", "=", "secret"], "a condition is of type str, wanted a tuple", '("column", '),
        ({"secret"}, "a condition is of type set, wanted a tuple", '("column", '),
    ],
    ids=str,
)
def test_a_structure_that_is_none_is_refused_with_what_is_wanted(
    structure: object, message: str, hint: str
) -> None:
    with pytest.raises(PolicyError) as caught:
        from_structure(structure)
    assert str(caught.value) == message
    assert hint in str(caught.value.hint)


@pytest.mark.parametrize("text", ["a = :who", "a = ?", "a in (1, $1)", "a > %s", "a = @who"])
def test_a_parameter_without_values_is_no_text(text: str) -> None:
    with pytest.raises(PolicyError, match="no value is given for the parameter") as caught:
        from_text(text)
    assert "--parameters" in str(caught.value.hint)


def test_a_text_in_quotes_is_no_parameter() -> None:
    assert from_text("a = ':who'") == one("a", Operator.EQUAL, ":who")
    assert from_text("a = :who", {"who": "?"}) == one("a", Operator.EQUAL, "?")


@pytest.mark.parametrize(
    "value",
    [
        "5",
        "-5",
        "1.5",
        "2e-3",
        "2024-03-01",
        "2024-03-01T10:30:00",
        "2024-03-01T10:30:00.5+02:00",
        "-0044-03-15",
        "+12024-01-01",
        "10:30:00.25",
        "true",
        "FALSE",
        "inf",
        "-Infinity",
        "NaN",
        "PT1H30M",
        "-P1DT0.5S",
        "P2W",
        "hex:00fF",
        "hex:",
        "550e8400-e29b-41d4-a716-446655440000",
    ],
)
def test_numbers_times_and_the_like_need_no_quotes(value: str) -> None:
    assert from_text(f"a = {value}") == one("a", Operator.EQUAL, value)


@pytest.mark.parametrize(
    ("value", "is_name"),
    [
        ("country", True),
        ("address.zip", True),
        ("oré", True),
        ("user7@example.com", False),
        ("7up", False),
        ("10.0.0.1", False),
        ("a-b", False),
        ("P", True),
    ],
)
def test_a_word_without_quotes_is_no_text(value: str, is_name: bool) -> None:
    with pytest.raises(PolicyError, match="the value at character 5 is not in quotes") as caught:
        from_text(f"a = {value}")
    assert "single quotes" in str(caught.value.hint)
    assert ("columns are not compared" in str(caught.value.hint)) is is_name


def test_a_column_in_the_place_of_a_value_is_told_so() -> None:
    with pytest.raises(PolicyError) as caught:
        from_text('a = "b"')
    assert "columns are not compared with each other" in str(caught.value.hint)


def test_values_do_not_show() -> None:
    assert "secret" not in repr(one("a", Operator.EQUAL, "secret"))


@pytest.mark.parametrize(
    ("path", "wanted"),
    [
        ('"a b".m', ("a b", "m")),
        ('"a"."m"', ("a", "m")),
        ('a."m"', ("a", "m")),
        ('"a b" . "m"', ("a b", "m")),
        ('"a.b".c.d."e"', ("a.b", "c", "d", "e")),
        ('"a.b"', None),
    ],
)
def test_members_may_be_quoted_one_by_one(path: str, wanted: tuple[str, ...] | None) -> None:
    found = from_text(f"{path} = 1")
    assert isinstance(found, Condition)
    assert found.path == wanted


@pytest.mark.parametrize(
    "form",
    [
        lambda n: " and ".join(f"a < {i}" for i in range(n)),
        lambda n: " or ".join(f"a = {i} and b = 1" for i in range(n)),
        lambda n: f"a in ({', '.join(map(str, range(n)))})",
        lambda n: "a = '" + "''" * n + "'",
    ],
    ids=["and", "or", "in", "quotes"],
)
def test_a_long_condition_takes_time_by_its_length(form: Callable[[int], str]) -> None:
    assert growth(lambda n: from_text(form(n)), 200) < 5


def test_a_chain_of_nots_visits_each_condition_once() -> None:
    inner = " or ".join(f"a < {i}" for i in range(200))
    plain = calls(lambda: from_text(f"not ({inner})"))
    assert calls(lambda: from_text("not " * 91 + f"({inner})")) < 1.5 * plain


@pytest.mark.parametrize("text", ["email like '%x.example'", "email ilike 'a_b'"])
def test_other_patterns_are_answered_by_sql(text: str) -> None:
    with pytest.raises(PolicyError, match="is answered for a beginning alone") as caught:
        from_text(text)
    assert "secure-bloom sql" in str(caught.value.hint)


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        ("lower(email) = 'secret'", "a function at character 1", "COLUMN ilike 'text'"),
        ("starts_with(email, 'secret')", "a function at character 1", "like 'beginning%'"),
        ("year(day) = 2026", "a function at character 1", ">= '2026-01-01'"),
        ("list_contains(tags, 'secret')", "a function at character 1", "COLUMN = 3"),
        ("coalesce(id, 0) = 3", "a function at character 1", "COLUMN is null or"),
        ("id = 1 and email = concat('a', 'secret')", "a function at character 20", ""),
        ("cast(email as date) > '2026-01-01'", "casts a column at character 6", ""),
        ("cast(\"email\" as date) > '2026-01-01'", "casts a column at character 6", ""),
        ("id in (select secret from t)", "a query at character 8", ""),
    ],
)
def test_what_only_sql_takes_names_a_condition_that_says_the_same(
    text: str, message: str, hint: str
) -> None:
    with pytest.raises(PolicyError, match=message) as caught:
        from_text(text)
    shown = str(caught.value.hint)
    assert hint in shown
    assert "secure-bloom sql" in shown
    assert "secret" not in shown
    assert "quotes" not in shown


def test_a_constant_is_cast_as_before() -> None:
    assert from_text("id = cast('7' as int)") == from_text("id = '7'::int")
    assert from_text("day = cast('2026-01-31' as date)") == from_text("day = date '2026-01-31'")


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("where id = 7", "leave the word where out"),
        ("SELECT * FROM t WHERE id = 7", "secure-bloom sql QUERY"),
        ("id = 1 && id = 2", "write and, or, not"),
        ("id = 1 | id = 2", "write and, or, not"),
        ("!(id = 4)", "write not in place of !"),
        ("id !> 4", "write not in place of !"),
        ("id between 3, 4", "id between 3 and 4"),
        ("id = 7, name = 'x'", "joined by and"),
        ("id = 7 group by name", "secure-bloom sql"),
    ],
)
def test_words_of_other_languages_have_their_own_hint(text: str, hint: str) -> None:
    with pytest.raises(PolicyError) as caught:
        from_text(text)
    assert hint in str(caught.value.hint).partition("\n")[0]
    assert "7" not in str(caught.value.hint)


def test_many_conditions_take_time_for_each() -> None:
    def seconds(count: int) -> float:
        text = " or ".join(f"a = {n}" for n in range(count))
        started = time.process_time()
        from_text(text)
        return time.process_time() - started

    # A copy of the rest of the tokens for each condition took 30 times as long here.
    assert seconds(16_000) < 20 * min(seconds(2_000) for _ in range(3))
