"""API v3 of a proxy, as a client of one cluster meets it."""

from typing import Any, Self

import httpx2

from tests.support.proxy import ProxyProcess


class ClusterApi:
    """Requests under `/v3/clusters/{cluster_id}` of a proxy."""

    def __init__(self, proxy: ProxyProcess) -> None:
        self.http = httpx2.Client(base_url=proxy.url, timeout=30)
        self.id: str = self.http.get("/v3/clusters").json()["data"][0]["cluster_id"]
        self.root = f"/v3/clusters/{self.id}"
        self.url = f"{proxy.url}{self.root}"
        self.name = f"crn:///kafka={self.id}"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.http.close()

    def get(self, path: str, **options: Any) -> httpx2.Response:
        """Ask for what lies under the cluster."""
        return self.http.get(self.root + path, **options)

    def send(self, method: str, path: str, body: object = None) -> httpx2.Response:
        """Send a body, or none, to what lies under the cluster."""
        return self.http.request(method, self.root + path, json=body) if body is not None else self.bare(method, path)

    def bare(self, method: str, path: str) -> httpx2.Response:
        """Send no body."""
        return self.http.request(method, self.root + path)

    def related(self, path: str) -> dict[str, str]:
        """How a resource tells the way to another one."""
        return {"related": self.url + path}


def failure(answer: httpx2.Response) -> tuple[int, int]:
    """Status and code of an answer that is no success, which has a message, too."""
    payload = answer.json()
    assert set(payload) == {"error_code", "message"}
    assert payload["message"]
    return answer.status_code, payload["error_code"]
