"""Hudi tables: no file of them is listed or written here, except by the verbs of ``hudi``."""

from __future__ import annotations

from secure_bloom.errors import UnsupportedFeatureError
from secure_bloom.lakes.table_format import ListedTable, TableFormat, TableVersion


class HudiTables(TableFormat):
    """Tables whose timeline is ``.hoodie``."""

    title = "a Hudi table"
    log_folder = ".hoodie"
    rewritten_by = (
        "no command of secure-bloom writes into a Hudi table, whose timeline has the sizes of its "
        "files: rewrite them with Hudi, in a session that encrypts"
    )

    def list_table(self, path: str, at: TableVersion) -> ListedTable:
        """Raise UnsupportedFeatureError."""
        del at
        raise UnsupportedFeatureError(
            "the timeline of a Hudi table is not read", hint=self.refusal, path=path
        )
