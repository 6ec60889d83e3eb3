"""Tables of Spark Structured Streaming: the log of the query's sink names the files."""

from __future__ import annotations

from secure_bloom.errors import PolicyError, UnsupportedFeatureError
from secure_bloom.lakes.table_format import ListedTable, TableFormat, TableVersion, below_key
from secure_bloom.storage.dispatch import tree_of


class StreamingTables(TableFormat):
    """Tables whose log, ``_spark_metadata``, names files and neither columns nor versions."""

    title = "a table of Spark Structured Streaming"
    log_folder = "_spark_metadata"
    is_found_by_log = True
    rewritten_by = (
        "no command of secure-bloom writes into a table of Spark Structured Streaming, whose log "
        "has the sizes of its files: write its rows to another folder, under the policy, by a "
        "batch job or a new query"
    )

    def list_table(self, path: str, at: TableVersion) -> ListedTable:
        """Return the files of all batches."""
        from secure_bloom.lakes.streaming_sink import committed_files

        if not at.is_latest:
            raise PolicyError(
                "only Delta, Iceberg and Paimon tables have versions that can be read", path=path
            )
        files = committed_files(path)
        tree = tree_of(path)
        top = tree.key(path)
        if any(below_key(tree.key(file), top) is None for file in files):
            raise UnsupportedFeatureError(
                "the log of the streaming query names files elsewhere",
                hint="its log has absolute paths: read the table at the path where the query "
                "wrote it",
                path=path,
            )
        return ListedTable(format=self, place=path, files=dict.fromkeys(files))
