"""The records of a table's format: the id of a deletion vector has its offset, if there is one."""

from secure_bloom.lakes import DeletionVector


def test_the_id_of_a_deletion_vector_has_its_offset_where_it_has_one() -> None:
    rest = {"storage_type": "u", "path_or_inline_dv": "ab", "size_in_bytes": 1, "cardinality": 1}
    ids = [DeletionVector(offset=offset, **rest).unique_id for offset in (None, 0, 4)]
    assert ids == ["uab", "uab@0", "uab@4"]
