"""The safe rules keep a file that Paimon 0.9 skips; both take whole predicates alone."""

from __future__ import annotations

import base64

import pytest

from secure_bloom.errors import PolicyError
from secure_bloom.paimon import And, FileIndex, Rules, as_predicate, must_read, typed_forms
from tests.paimon.test_skipping import TYPES, VECTORS, WRONG_IN_JAVA
from tests.paimon.vectors import predicate_of


def test_a_value_that_all_indexes_have_keeps_the_file_whatever_java_said() -> None:
    name, written = WRONG_IN_JAVA
    (case,) = (case for case in VECTORS["cases"] if case["name"] == name)
    assert case["answers"][case["predicates"].index(written)] == 0
    index, forms = FileIndex.from_bytes(base64.b64decode(case["file"])), typed_forms(TYPES)
    assert must_read(index, predicate_of(["=", "k", 3], TYPES), forms)
    asked = predicate_of(written, TYPES)
    assert must_read(index, asked, forms)
    assert not must_read(index, asked, forms, rules=Rules.PAIMON_0_9)


@pytest.mark.parametrize("rules", list(Rules))
def test_a_predicate_has_an_end(rules: Rules) -> None:
    deep = as_predicate("id = 5")
    for _ in range(5000):
        deep = And((deep,))
    with pytest.raises(PolicyError, match="deeper than 100"):
        must_read(FileIndex(), deep, typed_forms({}), rules=rules)
