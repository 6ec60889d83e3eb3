"""A policy to begin with: the text of a policy.toml that names every column of a table."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from secure_bloom.encryption.policy_tables import is_column_path
from secure_bloom.reports.text import without_commands

#: Client of [kms] -> its lines.
KMS_LINES: Final[Mapping[str, tuple[str, ...]]] = {
    "keyring": (
        'client = "keyring"',
        'keyring = "keyring.json"    # made by: secure-bloom keys new keyring.json --policy THIS',
    ),
    "vault": (
        'client = "vault"            # HashiCorp Vault or OpenBao, transit engine',
        'address = "https://vault.example.com:8200"',
        '# mount = "transit"',
        '# auth = "token"            # or "approle", "kubernetes"; tokens come from VAULT_TOKEN',
    ),
    "aws": (
        'client = "aws"              # master keys are key ids or alias/...',
        'region = "eu-central-1"',
    ),
    "gcp": (
        'client = "gcp"',
        'key_ring = "projects/PROJECT/locations/LOCATION/keyRings/RING"',
    ),
    "azure": ('client = "azure"', 'vault_url = "https://NAME.vault.azure.net"'),
}
_HEAD: Final = """\
# Which master key protects which column.  A policy names keys and holds none.
# It is a beginning: remove the '#' of the columns that are sensitive, and name your keys.
# Then: secure-bloom policy check FILE --table TABLE; secure-bloom keys check --policy FILE
"""
_FOOTER: Final = """
# With mode "plaintext" everybody may read the schema; the footer is signed with this key.
[footer]
key = "k_footer"
mode = "encrypted"

# A column with a key is encrypted.  `bloom = true` asks for a filter, to look values up by it.
# A nested column is the path of its leaf, as Spark wants it.
"""


def policy_text(columns: Iterable[tuple[str, str]], *, client: str) -> str:
    """Return the text for columns, given as dotted name and type; each of them is commented out."""
    kms = "\n".join(["", "[kms]", *KMS_LINES[client], ""])
    # A rule is for all columns of its dotted name, and TOML takes no table twice.
    kinds = dict(columns)
    return _HEAD + kms + _FOOTER + "".join(_column(name, kind) for name, kind in kinds.items())


def toml_string(text: str) -> str:
    """Return the text as a string of TOML; all that is not plain ASCII is escaped."""
    # Not JSON's form: it writes characters beyond U+FFFF as two surrogates, which TOML refuses,
    # and DEL as it is.
    return without_commands('"' + "".join(map(_toml_character, text)) + '"')


def _toml_character(char: str) -> str:
    if char in '"\\':
        return f"\\{char}"
    if char.isascii() and char.isprintable():
        return char
    return f"\\u{ord(char):04x}" if ord(char) < 0x10000 else f"\\U{ord(char):08x}"


def _column(name: str, kind: str) -> str:
    if not is_column_path(name):
        why = "a part of its path is empty"
        return f"\n# Column {toml_string(name)} cannot be named in a policy: {why}.\n"
    table = f"[columns.{toml_string(name)}]"
    return f'\n# {table:<40} # {kind}\n# key = "k_pii"\n# bloom = true\n'
