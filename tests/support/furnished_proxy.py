"""A proxy with a broker and a registry of its own, and with everything that the examples of its document speak of."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import httpx2

from tests.support.broker import BrokerProcess
from tests.support.patience import PATIENCE_S
from tests.support.proxy import ProxyProcess
from tests.support.registry import RegistryProcess

V2: Final = "application/vnd.kafka.v2+json"
TOPICS: Final = ("orders", "payments")
GROUP: Final = "billing"
INSTANCE: Final = "reader-1"


class FurnishedProxy:
    """A running proxy whose cluster has topics, records, a consumer group and a consumer instance."""

    def __init__(self, http: httpx2.Client) -> None:
        """`http` is a client of the proxy, with a login where one is needed."""
        self.http = http
        self.cluster_id: str = self.http.get("/v3/clusters").json()["data"][0]["cluster_id"]

    def furnish(self) -> None:
        """Make what the examples speak of."""
        for topic in TOPICS:
            self.create_topic(topic)
            records = {"records": [{"key": f"k{number}", "value": {"amount": number}} for number in range(20)]}
            self.sent("POST", f"/topics/{topic}", records, media_type="application/vnd.kafka.json.v2+json")
        self.create_instance(INSTANCE)
        self.sent("POST", f"/consumers/{GROUP}/instances/{INSTANCE}/subscription", {"topics": list(TOPICS)})
        self._join(INSTANCE)
        offsets = [{"topic": topic, "partition": 0, "offset": 1} for topic in TOPICS]
        self.sent("POST", f"/consumers/{GROUP}/instances/{INSTANCE}/offsets", {"offsets": offsets})

    def create_topic(self, topic: str) -> None:
        """A topic with three partitions."""
        path = f"/v3/clusters/{self.cluster_id}/topics"
        body = {"topic_name": topic, "partitions_count": 3}
        self.sent("POST", path, body, media_type="application/json")

    def create_instance(self, name: str, *, group: str = GROUP) -> None:
        """A consumer instance that reads JSON."""
        body = {"name": name, "format": "json", "auto.offset.reset": "earliest"}
        self.sent("POST", f"/consumers/{group}", body)

    def _join(self, name: str) -> None:
        """Poll until the group has given the instance its partitions."""
        path = f"/consumers/{GROUP}/instances/{name}/records"
        for _ in range(int(PATIENCE_S)):
            if self.http.get(path, params={"timeout": 1000}).json():
                return
        raise AssertionError("the instance gets no records")

    def sent(self, method: str, path: str, body: object, *, media_type: str = V2) -> httpx2.Response:
        """Send a body that must be taken."""
        answer = self.http.request(method, path, json=body, headers={"content-type": media_type})
        assert answer.is_success, answer.text
        return answer

    def known(self) -> dict[str, str]:
        """What is called otherwise in each cluster, by the names of the parameters in paths."""
        path = f"/v3/clusters/{self.cluster_id}/consumer-groups/{GROUP}/consumers"
        consumer_id: str = self.http.get(path).json()["data"][0]["consumer_id"]
        return {"cluster_id": self.cluster_id, "consumer_id": consumer_id}

    def document(self) -> dict[str, Any]:
        """The OpenAPI document."""
        document: dict[str, Any] = self.http.get("/openapi.json").json()
        return document


@contextmanager
def furnished_proxy(directory: Path) -> Iterator[FurnishedProxy]:
    """Such a proxy for as long as the block lasts; it must live until then, without a traceback in its log."""
    impatient = {"consumer.request.timeout.ms": "100"}
    with (
        BrokerProcess(directory / "broker") as broker,
        RegistryProcess(directory / "registry") as registry,
        ProxyProcess(
            directory / "proxy", bootstrap=broker.bootstrap, registry=registry.url, settings=impatient
        ) as process,
    ):
        with httpx2.Client(base_url=process.url, timeout=30) as http:
            proxy = FurnishedProxy(http)
            proxy.furnish()
            yield proxy
        assert process.is_running
        assert "Traceback" not in process.log_text()
