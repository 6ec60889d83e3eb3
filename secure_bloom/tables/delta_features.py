"""The features of Delta tables that this package reads.

Any other feature is refused by its name.
"""

from __future__ import annotations

from secure_bloom.errors import FormatError, UnsupportedFeatureError
from secure_bloom.tables.live_file import Protocol, TableMetadata

_HINT = "read the table with its own engine"


#: Reader features that are honoured here.  Which files live, none of them changes.  Files of other
#: types are promoted as those of bare folders; rows of variants are refused where they are read.
KNOWN = frozenset(
    {
        "columnMapping",
        "deletionVectors",
        "timestampNtz",
        "typeWidening",
        "typeWidening-preview",
        "v2Checkpoint",
        "vacuumProtocolCheck",
        "variantShredding",
        "variantShredding-preview",
        "variantType",
        "variantType-preview",
    }
)


#: From this reader version on, features are listed by name; before, the version stands for them.
_FEATURES_FROM = 3


_MAPPING_MODES = frozenset({"none", "name", "id"})


def refuse_unknown(protocol: Protocol, metadata: TableMetadata) -> None:
    """Raise UnsupportedFeatureError, by name, for an unknown feature that readers must know."""
    if protocol.min_reader_version > _FEATURES_FROM:
        raise UnsupportedFeatureError(
            f"the Delta table wants readers of version {protocol.min_reader_version}, "
            f"and {_FEATURES_FROM} is the last one known here",
            hint=_HINT,
        )
    # Only features of readers count: a feature of writers alone changes nothing of what a file
    # means.
    unknown = sorted(protocol.reader_features - KNOWN)
    if unknown:
        raise UnsupportedFeatureError(
            f"the Delta table has the reader feature {', '.join(unknown)}, which is not known here",
            hint=_HINT,
        )
    if metadata.column_mapping_mode not in _MAPPING_MODES:
        raise FormatError(f"delta.columnMapping.mode is {metadata.column_mapping_mode!r}")
