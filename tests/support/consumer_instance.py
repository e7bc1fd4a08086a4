"""A consumer instance as its clients meet it: over HTTP."""

import json
from collections.abc import Iterable
from typing import Any, Self

import httpx2

from tests.support.patience import PATIENCE_S

V2 = "application/vnd.kafka.v2+json"


class ConsumerInstance:
    """One instance of a group, by name; everything that can be asked of it."""

    def __init__(self, client: httpx2.Client, group: str, name: str, format_: str = "binary") -> None:
        self.client, self.group, self.name, self.format = client, group, name, format_
        self.path = f"/consumers/{group}/instances/{name}"

    @classmethod
    def create(cls, client: httpx2.Client, group: str, **config: object) -> Self:
        """A new instance that reads from the beginning and waits for records, unless the config says otherwise."""
        asked = {"auto.offset.reset": "earliest", "consumer.request.timeout.ms": 20_000}
        asked |= {key.replace("_", "."): value for key, value in config.items()}
        answer = client.post(f"/consumers/{group}", json=asked, headers={"Content-Type": V2})
        assert answer.status_code == 200, answer.text
        return cls(client, group, answer.json()["instance_id"], str(config.get("format", "binary")))

    def at(self, client: httpx2.Client) -> Self:
        """The same instance, seen through another connection."""
        return type(self)(client, self.group, self.name, self.format)

    def post(self, path: str, body: object = None) -> httpx2.Response:
        """Send a body, or none."""
        content = b"" if body is None else json.dumps(body).encode()
        return self.client.post(f"{self.path}/{path}", content=content, headers={"Content-Type": V2})

    def get(self, path: str) -> Any:
        """What a GET answers."""
        answer = self.client.get(f"{self.path}/{path}")
        assert answer.status_code == 200, answer.text
        return answer.json()

    def done(self, path: str, body: object = None) -> None:
        """Send a body; it is answered with success."""
        answer = self.post(path, body)
        assert answer.status_code in (200, 204), answer.text

    def subscribe(self, *topics: str) -> None:
        """Subscribe to topics."""
        self.done("subscription", {"topics": list(topics)})

    def assign(self, topic: str, *partitions: int) -> None:
        """Read partitions."""
        self.done("assignments", {"partitions": [{"topic": topic, "partition": number} for number in partitions]})

    def seek(self, topic: str, partition: int, offset: int) -> None:
        """Read on elsewhere."""
        self.done("positions", {"offsets": [{"topic": topic, "partition": partition, "offset": offset}]})

    def commit(self) -> None:
        """Commit what was answered."""
        self.done("offsets")

    def committed(self, topic: str, *partitions: int) -> dict[int, int]:
        """What the group has committed."""
        body = {"partitions": [{"topic": topic, "partition": number} for number in partitions]}
        answer = self.client.request("GET", f"{self.path}/offsets", json=body, headers={"Content-Type": V2})
        assert answer.status_code == 200, answer.text
        return {item["partition"]: item["offset"] for item in answer.json()["offsets"]}

    def poll(self, **parameters: int) -> httpx2.Response:
        """One request for records."""
        accept = f"application/vnd.kafka.{self.format}.v2+json"
        return self.client.get(f"{self.path}/records", params=parameters, headers={"Accept": accept})

    def records(self, **parameters: int) -> list[dict[str, Any]]:
        """The records of one answer."""
        answer = self.poll(**parameters)
        assert answer.status_code == 200, answer.text
        page: list[dict[str, Any]] = answer.json()
        return page

    def read(self, count: int, **parameters: int) -> list[dict[str, Any]]:
        """As many records, in as many answers as it takes."""
        records: list[dict[str, Any]] = []
        for _ in range(int(PATIENCE_S)):
            records += self.records(**parameters)
            if len(records) >= count:
                break
        return records

    def delete(self) -> httpx2.Response:
        """End it."""
        return self.client.delete(self.path)


def offsets(records: Iterable[dict[str, Any]]) -> list[int]:
    """The offsets of records."""
    return [record["offset"] for record in records]


def error(answer: httpx2.Response) -> tuple[int, int]:
    """Status and code of a refusal, which has words, too."""
    assert answer.json()["message"]
    return answer.status_code, answer.json()["error_code"]
