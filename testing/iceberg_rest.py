"""A REST catalog of Iceberg in front of a catalog of pyiceberg: clients of REST share its tables.

Iceberg's REST specification: the requests by which clients load a table and commit to it.  The
catalog, its database and its checks of requirements are pyiceberg's own.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

from pyiceberg.catalog import Catalog
from pyiceberg.exceptions import CommitFailedException, NoSuchNamespaceError, NoSuchTableError
from pyiceberg.table import CommitTableRequest, Table

from testing.http_servers import http_server

Document = dict[str, Any]
_TABLE: Final = re.compile(r"/v1/namespaces/([^/?]+)/tables/([^/?]+)")
_NAMESPACE: Final = re.compile(r"/v1/namespaces/([^/?]+)")
#: Exceptions of the catalog -> the status that clients take for the same.
_STATUS: Final = {NoSuchTableError: 404, NoSuchNamespaceError: 404, CommitFailedException: 409}


@contextmanager
def rest_catalog(catalog: Catalog, change: Callable[[Document], object] = id) -> Iterator[str]:
    """A server on loopback for the tables of a catalog; its address.

    ``change`` changes what the server sends of a table.
    """
    one_at_a_time = threading.Lock()

    def answer(method: str, path: str, body: bytes) -> tuple[int, dict[str, str], bytes]:
        with one_at_a_time:
            try:
                found = _answered(catalog, method, path, body, change)
            except tuple(_STATUS) as error:
                status = _STATUS[type(error)]
                said = {"message": str(error), "type": type(error).__name__, "code": status}
                return status, {}, json.dumps({"error": said}).encode()
        return 200, {}, json.dumps(found).encode()

    with http_server(answer) as address:
        yield address


def _answered(
    catalog: Catalog, method: str, path: str, body: bytes, change: Callable[[Document], object]
) -> Document:
    if path.startswith("/v1/config"):
        return {"defaults": {}, "overrides": {}}
    if named := _TABLE.match(path):
        table = catalog.load_table(named.groups())
        if method == "POST":
            asked = CommitTableRequest.model_validate_json(body)
            catalog.commit_table(table, asked.requirements, asked.updates)
            table = catalog.load_table(named.groups())
        loaded = _loaded(table)
        change(loaded)
        return loaded
    if named := _NAMESPACE.match(path):
        name = named.group(1)
        properties = catalog.load_namespace_properties(name)
        return {"namespace": [name], "properties": dict(properties)}
    raise NoSuchNamespaceError(path)


def _loaded(table: Table) -> Document:
    return {
        "metadata-location": table.metadata_location,
        "metadata": json.loads(table.metadata.model_dump_json()),
        "config": {},
    }
