"""Files are chosen by partition columns alone."""

from __future__ import annotations

import pyarrow as pa
import pytest

from secure_bloom.errors import PolicyError
from secure_bloom.lakes.partition_choice import chosen_by_partition, unmatched_note

DAYS = {"day": pa.array(["1", "2", None]), "n": pa.array([1, 2, 3])}


@pytest.mark.parametrize(
    ("where", "wanted"),
    [
        ("day = '2'", [False, True, False]),
        ("day is null or n < 2", [True, False, True]),
        ("n > 9", [False] * 3),
    ],
)
def test_a_file_counts_if_the_condition_is_true_of_its_partition(
    where: str, wanted: list[bool]
) -> None:
    assert chosen_by_partition(where, "t", ["day", "n"], DAYS.__getitem__) == wanted


def test_a_column_that_is_no_partition_column_is_refused() -> None:
    with pytest.raises(PolicyError, match="'id' is not a partition column") as error:
        chosen_by_partition("day = '2' and id = 5", "t", ["day"], DAYS.__getitem__)
    assert "they are day" in str(error.value.hint)


def test_the_note_lists_the_first_values_and_counts_the_others() -> None:
    days = [*map(str, range(9, 0, -1)), None, "1"]
    note = unmatched_note("day = '0'", {"day": days, "n": ["5"]})
    assert note == "no live file has day = '0': day is '1', '2', '3', '4', '5' and 5 more"
    assert unmatched_note("day = '0'", {"day": [None]}).endswith(": day is null")
