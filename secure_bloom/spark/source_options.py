"""The options of `spark.read.format("secure_bloom")`, from the texts that Spark hands over."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from secure_bloom.calling.arguments import member_of
from secure_bloom.calling.options import MissingKeys
from secure_bloom.encryption.configuration import close_match
from secure_bloom.encryption.kms import Keyring
from secure_bloom.encryption.policy import KeyPolicy
from secure_bloom.errors import PolicyError
from secure_bloom.lakes.iceberg.catalog import absolute_place
from secure_bloom.predicates.from_text import from_text
from secure_bloom.predicates.tree import Predicate
from secure_bloom.reading.read_request import TableRequest
from secure_bloom.storage import local_path
from secure_bloom.storage.storage_options import shared_grant
from secure_bloom.storage.store_grants import StoreGrant

#: Files that are taken all the same.
_ACCEPTING = ("allowUnverified", "allowUnprotected")
_WORDS = (
    "path",
    "paths",
    "policy",
    "keyring",
    "where",
    "columns",
    "withoutFilterKeys",
    "missingKeys",
    "storageOptions",
    "version",
    "timestamp",
    *_ACCEPTING,
)
#: Properties that Spark adds to the options for a table in its catalog.
_OF_CATALOG = {"owner", "provider", "location"}
_VIEW = "CREATE TEMPORARY VIEW name USING secure_bloom OPTIONS (path '...', policy '...')"
_FLAGS = {"true": True, "false": False}


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceOptions:
    """The paths of a table, what unwraps its keys, and the wanted rows and columns.

    An empty option means all rows, or all columns.  It can be pickled, and holds no keys.  The
    ``grant`` says where the store is, as long as the options are referenced.
    """

    paths: tuple[str, ...]
    policy: KeyPolicy | None = None
    keyring: str | None = None
    where: Predicate | None = field(default=None, repr=False)
    without_filter_keys: bool = False
    missing_keys: MissingKeys = MissingKeys.ERROR
    allow_unverified: bool = False
    allow_unprotected: bool = False
    columns: tuple[str, ...] = ()
    version: int | None = None
    timestamp: str | None = None
    grant: StoreGrant | None = field(default=None, repr=False)

    def request(self) -> TableRequest:
        """Return the request for the table. A keyring is read now."""
        return TableRequest(
            self.paths,
            keys=None if self.keyring is None else Keyring.load(self.keyring),
            policy=self.policy,
            allow_unverified=self.allow_unverified,
            allow_unprotected=self.allow_unprotected,
            version=self.version,
            timestamp=self.timestamp,
        )


def source_options(options: Mapping[str, str]) -> SourceOptions:
    """Return the options. Raises PolicyError for an unknown or invalid one.

    Spark writes their names in lower case.  Paths become absolute.
    """
    if {word.lower() for word in options} >= _OF_CATALOG:
        raise PolicyError(
            "Spark keeps no options of a Python data source for a table in its catalog",
            hint=f"make a view: {_VIEW}",
        )
    for word in options:
        if word.lower() not in map(str.lower, _WORDS):
            raise PolicyError(
                f"the data source has no option {word!r}", hint=close_match(word, _WORDS)
            )
    policy, keyring = options.get("policy"), options.get("keyring")
    if policy is not None and keyring is not None:
        raise PolicyError(
            "both policy and keyring are given", hint="the policy's [kms] names a keyring too"
        )
    paths = _paths(options)
    return SourceOptions(
        paths=paths,
        policy=None if policy is None else KeyPolicy.load(local_path(policy)),
        keyring=None if keyring is None else str(Path(local_path(keyring)).absolute()),
        where=from_text(options["where"]) if "where" in options else None,
        without_filter_keys=_flag(options, "withoutFilterKeys"),
        missing_keys=member_of(MissingKeys, "missingKeys", options.get("missingKeys", "error")),
        allow_unverified=_flag(options, "allowUnverified"),
        allow_unprotected=_flag(options, "allowUnprotected"),
        columns=_columns(options.get("columns", "")),
        version=_version(options.get("version")),
        timestamp=options.get("timestamp"),
        grant=_grant(paths, options.get("storageOptions")),
    )


def _grant(paths: tuple[str, ...], text: str | None) -> StoreGrant | None:
    """Return the settings of the store from the option's JSON object, or None without the option.

    No error quotes the text, because it may hold a secret.
    """
    if text is None:
        return None
    try:
        given = json.loads(text)
    except ValueError:
        given = None
    if not isinstance(given, dict):
        raise PolicyError("the option 'storageOptions' is not a JSON object") from None
    return shared_grant(paths, given)


def _paths(options: Mapping[str, str]) -> tuple[str, ...]:
    found = [options["path"]] if "path" in options else []
    found += _texts("paths", options["paths"]) if "paths" in options else []
    if not found:
        raise PolicyError(
            "no path is given", hint=f'spark.read.format("secure_bloom").load(PATH); in SQL {_VIEW}'
        )
    return tuple(map(absolute_place, found))


def _version(text: str | None) -> int | None:
    if text is not None and not text.isdecimal():
        raise PolicyError("the option 'version' is not a number")
    return None if text is None else int(text)


def _flag(options: Mapping[str, str], word: str) -> bool:
    text = options.get(word, "false")
    if text.lower() not in _FLAGS:
        raise PolicyError(f"the option {word!r} is neither true nor false")
    return _FLAGS[text.lower()]


def _columns(text: str) -> tuple[str, ...]:
    """Return the names in `a, b`, or in a JSON list if a name has a comma."""
    if text.lstrip().startswith("["):
        return tuple(_texts("columns", text))
    return tuple(name.strip() for name in text.split(",") if name.strip())


def _texts(word: str, text: str) -> list[str]:
    try:
        found = json.loads(text)
    except ValueError:
        found = None
    if not isinstance(found, list) or not all(isinstance(item, str) for item in found):
        raise PolicyError(f"the option {word!r} is not a JSON list of texts")
    return found
