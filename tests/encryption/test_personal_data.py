"""Columns that look like personal data, and those that do not."""

from __future__ import annotations

import pytest

from secure_bloom.encryption.personal_data import kind_of_name, kind_of_values


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("email", "e-mail addresses"),
        ("contactEmail", "e-mail addresses"),
        ("IBAN_2", "IBANs"),
        ("credit_card", "card numbers"),
        ("card", "card numbers"),
        ("card_type", None),
        ("mobilePhone", "phone numbers"),
        ("tel", "phone numbers"),
        ("hotel", None),
        ("codice_fiscale", "national ids"),
        ("customer_tax_id", "national ids"),
        ("SSN", "national ids"),
        ("mailbox_count", None),
        ("company", None),
        ("panel", None),
        ("taxi_id", None),
        ("order_id", None),
    ],
)
def test_names(name: str, kind: str | None) -> None:
    assert kind_of_name(name) == kind


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        (["a@post.fi", "z@post.fi"], "e-mail addresses"),
        (["DE89 3704 0044 0532 0130 00", "GB82WEST12345698765432"], "IBANs"),
        (["DE88 3704 0044 0532 0130 00"], None),
        (["4111 1111 1111 1111", "5500000000000004"], "card numbers"),
        (["4111111111111112"], None),
        (["+49 30 1234567"], "phone numbers"),
        (["123-45-6789"], "national ids"),
        (["a@post.fi", "unknown"], None),
        (["2024-01-02", "Berlin"], None),
        ([], None),
    ],
)
def test_values(values: list[str], kind: str | None) -> None:
    assert kind_of_values(values) == kind
