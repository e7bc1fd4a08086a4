"""A user of the Python client `ksqldb`, as a process of its own because the client never closes its connections.

`python -m tests.support.ksqldb_user URL` prints what it has got.
"""

import asyncio
import json
import sys
from typing import Any

_STREAM = "CREATE STREAM pydb (id STRING KEY, n INT) WITH (kafka_topic='pydb', partitions=1, value_format='JSON');"
_TIMEOUT_S = 240


def use(url: str) -> dict[str, Any]:
    """Statements over HTTP/1.1, and rows over HTTP/2 with prior knowledge."""
    from ksqldb import KSQLdbClient

    client = KSQLdbClient(url)
    return {
        "created": client.ksql(_STREAM)[0]["commandStatus"]["status"],
        "acks": client.inserts_stream("pydb", [{"id": "a", "n": 1}, {"ID": "b", "N": 2}]),
        "properties": [one["name"] for one in client.get_properties()],
        "pulled": client.query_sync("SELECT id, n FROM pydb;", timeout=_TIMEOUT_S),
        "pushed": asyncio.run(_first_rows(client)),
    }


async def _first_rows(client: Any) -> list[Any]:
    """The rows of a push query that are there, which is then closed by a request of its own."""
    found: list[Any] = []
    properties = {"auto.offset.reset": "earliest"}
    rows = client.query_async("SELECT id, n FROM pydb EMIT CHANGES;", stream_properties=properties, timeout=_TIMEOUT_S)
    async for row in rows:
        found.append(row)
        if len(found) == 3 and not client.close_query(found[0]["queryId"]):
            raise RuntimeError("the query cannot be closed")
    return found


if __name__ == "__main__":
    sys.stdout.write(json.dumps(use(sys.argv[1])))
