"""Draft the text of a policy.toml that names every column of a table.

policy_text([("email", "STRING"), ("id", "INT64")], client="keyring")
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Final

from secure_bloom.encryption.configuration import close_match
from secure_bloom.encryption.personal_data import kind_of_path
from secure_bloom.encryption.policy_tables import is_column_path, toml_string
from secure_bloom.errors import PolicyError

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
"""
#: Spark encrypts no footer alone, so a footer with a key would fail until a column has one.
_FOOTER_IN_CLEAR: Final = """
# No column has a name that suggests personal data, so none has a key, and the footer is in clear.
# To protect a column, remove the '#' of its lines, and of those of [footer].
# [footer]
# key = "k_footer"
# mode = "encrypted"

# Every column without a key may be in clear.
[classified]
clear = ["*"]
"""
_COLUMNS: Final = """
# A column with a key is encrypted.  `bloom = true` asks for a filter, to look values up by it.
# A nested column is the path of its leaf, as Spark wants it.
"""


def policy_text(
    columns: Iterable[tuple[str, str]], *, client: str, sensitive: Iterable[str] | None = None
) -> str:
    """Return the text for columns, given as dotted name and type.

    The columns ``sensitive`` have a key and a filter, and so have those whose names suggest
    personal data.  The others are commented out; if all are, the policy takes the table in clear.
    Raises PolicyError for a sensitive column that is not there.
    """
    columns = list(columns)
    names = [name for name, _ in columns]
    wanted = _sensitive(names, sensitive or ())
    kms = "\n".join(["", "[kms]", *KMS_LINES[client], ""])
    # A rule is for all columns of its dotted name, and TOML takes no table twice.
    kinds = dict(columns)
    lines = (_column(name, kind, wanted.get(name)) for name, kind in kinds.items())
    footer = _FOOTER if wanted else _FOOTER_IN_CLEAR
    return "".join((_HEAD, kms, footer, _COLUMNS, *lines))


def _sensitive(names: Collection[str], given: Iterable[str]) -> dict[str, str]:
    """Return the sensitive columns, each with the reason. A structure means all of its leaves."""
    found = {}
    for name in names:
        kind = kind_of_path(tuple(name.split(".")))
        if kind is not None:
            found[name] = f"by its name it has {kind}"
    for asked in given:
        meant = [name for name in names if name == asked or name.startswith(f"{asked}.")]
        meant = meant or [name for name in names if name.lower() == asked.lower()]
        if not meant:
            raise PolicyError(f"there is no column {asked}", hint=close_match(asked, names))
        found |= dict.fromkeys(meant, "sensitive")
    return found


def _column(name: str, kind: str, reason: str | None) -> str:
    if not is_column_path(name):
        why = "a part of its path is empty"
        return f"\n# Column {toml_string(name)} cannot be named in a policy: {why}.\n"
    table = f"[columns.{toml_string(name)}]"
    if reason is not None:
        return f'\n{table:<42} # {kind}; {reason}\nkey = "k_pii"\nbloom = true\n'
    return f'\n# {table:<40} # {kind}\n# key = "k_pii"\n# bloom = true\n'
