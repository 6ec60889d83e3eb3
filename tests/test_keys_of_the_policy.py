"""With a policy, a KMS is asked only for the master keys that the policy names.

What a file names is a claim of whoever wrote it: an attacker may name a key of an account of their
own, which the caller's rights open, and fill the file with forged rows.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

import secure_bloom as sb
from secure_bloom.calling.options import FooterMode
from secure_bloom.encryption.policy_tables import ColumnRule, EncryptionOptions
from secure_bloom.hudi.filter_reader import show
from testing.recording_kms import EVERY_KEY, FOREIGN, AbleKms, RecordingKms
from testing.tables import customers

NAMED = {"k_footer", "k_pii"}
ROWS = 30


def rules(key: str) -> dict[str, ColumnRule]:
    return {"email": ColumnRule(path="email", key=key)}


WHERE = "email = 'user7@example.com'"
#: The policies under which somebody else has written a file.
FORGERIES = {
    "encrypted footer": sb.KeyPolicy(footer_key=FOREIGN, columns=rules(FOREIGN)),
    "signed footer": sb.KeyPolicy(
        footer_key=FOREIGN, footer_mode=FooterMode.SIGNED, columns=rules(FOREIGN)
    ),
    "column": sb.KeyPolicy(footer_key="k_footer", columns=rules(FOREIGN)),
    "single wrapping": sb.KeyPolicy(
        footer_key=FOREIGN,
        columns=rules(FOREIGN),
        encryption=EncryptionOptions(double_wrapping=False),
    ),
    "key material beside it": sb.KeyPolicy(
        footer_key=FOREIGN,
        columns=rules(FOREIGN),
        encryption=EncryptionOptions(internal_storage=False),
    ),
}
Verb = Callable[..., Any]
#: Each verb, called with a path, the folder of its output, and how keys are given.
VERBS: dict[str, Verb] = {
    "read": lambda path, _, **given: sb.read_table(path, **given),
    "read where": lambda path, _, **given: sb.read_table(path, where=WHERE, **given),
    "sql": lambda path, _, **given: sb.sql("select * from t", {"t": path}, **given),
    "explain": lambda path, _, **given: sb.explain(path, where=WHERE, **given),
    "probe": lambda path, _, **given: sb.probe(path, "email", ["user7@example.com"], **given),
    "add": lambda path, _, **given: sb.add_bloom_filters(path, columns="email", **given),
    "add in place": lambda path, _, **given: sb.add_bloom_filters(
        path, columns="email", in_place=True, **given
    ),
    "advise": lambda path, _, **given: sb.advise(path, columns="email", **given),
    "inspect": lambda path, _, **given: sb.inspect(path, check=True, **given),
    "audit": lambda path, _, **given: sb.audit(path, check_values=True, **given),
    "keys used": lambda path, _, **given: sb.keys_used(path, **given),
    "reencrypt": lambda path, _, **given: sb.reencrypt(path, **given),
    "reencrypt elsewhere": lambda path, to, **given: sb.reencrypt(path, output=to, **given),
    "rotate": lambda path, _, **given: sb.rotate_keys(path, **given),
    "decrypt": lambda path, to, **given: sb.decrypt(path, output=to, **given),
    "hudi show": lambda path, _, **given: show(path, **given),
    "hudi lookup": lambda path, _, **given: sb.hudi.lookup(
        path, "user7@example.com", column="email", **given
    ),
    "hudi add": lambda path, _, **given: sb.hudi.add_record_key_filter(
        path, column="email", allow_clear_entry=True, **given
    ),
    "paimon build": lambda path, _, **given: sb.paimon.build_indexes(
        path, "email", allow_clear_index=True, **given
    ),
}


def forged(folder: Path, forgery: str) -> Path:
    """A table of one file, whose rows nobody of ours wrote."""
    folder.mkdir()
    pq.write_table(customers(ROWS), folder / "0.parquet")
    assert not sb.reencrypt(folder, policy=FORGERIES[forgery], keys=EVERY_KEY).failed
    return folder


def policy(client: type = RecordingKms, *, signed: bool = False) -> sb.KeyPolicy:
    return sb.KeyPolicy(
        kms={"client": f"{client.__module__}:{client.__name__}"},
        footer_key="k_footer",
        footer_mode=FooterMode.SIGNED if signed else FooterMode.ENCRYPTED,
        columns=rules("k_pii"),
    )


@pytest.fixture(autouse=True)
def _nothing_asked_yet() -> None:
    RecordingKms.asked.clear()


def outcome(verb: str, path: Path, to: Path, **given: Any) -> str:
    """All that a user is told: the error, or what the report says of the file."""
    try:
        report = VERBS[verb](path, to, **given)
    except sb.SecureBloomError as error:
        return f"{error} {error.hint}"
    if not hasattr(report, "to_dict"):
        return f"{report.num_rows} rows"
    return str(report.to_dict())


@pytest.mark.parametrize(
    ("client", "given"), [(RecordingKms, "policy"), (AbleKms, "policy"), (AbleKms, "keys")]
)
@pytest.mark.parametrize("forgery", FORGERIES)
@pytest.mark.parametrize("verb", VERBS)
def test_no_verb_asks_for_a_key_that_only_the_file_names(
    tmp_path: Path, verb: str, forgery: str, client: type, given: str
) -> None:
    path = forged(tmp_path / "t", forgery)
    before = (path / "0.parquet").read_bytes()
    wanted = policy(client, signed=forgery == "signed footer")
    keys = client() if given == "keys" else None
    told = outcome(verb, path, tmp_path / "to", policy=wanted, keys=keys)
    assert set(RecordingKms.asked) <= NAMED
    # What needs no column of the file need not tell about its columns.
    assert FOREIGN in told or "its key is missing" in told or verb == "hudi show"
    assert (path / "0.parquet").read_bytes() == before
    assert not list((tmp_path / "to").rglob("*.parquet"))
