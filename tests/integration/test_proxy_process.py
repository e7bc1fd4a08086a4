"""The REST proxy as a process: starting, stopping, health, and what an operator may switch off."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest

from tests.support.admin import eventually
from tests.support.broker import BrokerProcess
from tests.support.proxy import ProxyProcess
from tests.support.registry import RegistryProcess
from tests.support.service import REPOSITORY, ServiceFailed, run_module, service_environment

UNREACHABLE = "127.0.0.1:1"


@pytest.fixture
def own_broker(tmp_path: Path) -> Iterator[BrokerProcess]:
    with BrokerProcess(tmp_path / "broker") as process:
        yield process


def test_health_follows_the_cluster(own_broker: BrokerProcess, registry: RegistryProcess, tmp_path: Path) -> None:
    with ProxyProcess(tmp_path / "proxy", bootstrap=own_broker.bootstrap, registry=registry.url) as proxy:
        assert httpx2.get(f"{proxy.url}/health", timeout=30).status_code == 200
        own_broker.kill()
        assert _health_becomes(proxy, 503) == {"status": "not ready"}
        own_broker.start()
        assert _health_becomes(proxy, 200) == {"status": "ok"}


def _health_becomes(proxy: ProxyProcess, status: int) -> object:
    health = eventually(
        lambda: httpx2.get(f"{proxy.url}/health", timeout=30), lambda answer: answer.status_code == status
    )
    return health.json()


def test_it_starts_and_stops_without_cluster_and_registry(tmp_path: Path) -> None:
    with ProxyProcess(tmp_path, bootstrap=UNREACHABLE, registry="http://127.0.0.1:1") as proxy:
        answer = httpx2.get(f"{proxy.url}/topics", timeout=60)
        assert (answer.status_code, answer.headers["retry-after"]) == (503, "1")
        assert UNREACHABLE in answer.json()["message"]
    assert "Traceback" not in proxy.log_text()


@pytest.mark.parametrize("folder,shown", [("kept", "{}/kept"), ("", "memory")])
def test_the_ready_line_says_where_consumer_instances_are_kept(tmp_path: Path, folder: str, shown: str) -> None:
    settings = {"state.dir": str(tmp_path / folder) if folder else ""}
    with ProxyProcess(tmp_path, bootstrap=UNREACHABLE, registry="http://127.0.0.1:1", settings=settings):
        (line,) = (tmp_path / "stdout.log").read_text().splitlines()
    assert line.startswith("caudal rest-proxy ready: ")
    assert line.endswith(f" state={shown.format(tmp_path)}")


def test_started_alone_it_leaves_nothing_in_the_current_directory(tmp_path: Path) -> None:
    settings = {"listeners": "http://127.0.0.1:0", "bootstrap.servers": UNREACHABLE}
    with subprocess.Popen(
        run_module("deploy.cli", settings, "rest-proxy"),
        cwd=tmp_path,
        env={**service_environment(), "PYTHONPATH": str(REPOSITORY)},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as process:
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
        finally:
            process.terminate()
    assert line.startswith("caudal rest-proxy ready: ")
    assert line.endswith(f" state={tmp_path}/caudal-platform/rest-proxy\n")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "settings,words",
    [
        ({"readers.max": "0", "no.such.setting": "1"}, ["readers.max=0", "no.such.setting"]),
        ({"producer.no.such.thing": "1"}, ["no.such.thing"]),
        ({"client.no.such.thing": "1"}, ["no.such.thing"]),
        ({"state.dir": f"{__file__}/folder"}, [Path(__file__).name]),
    ],
    ids=["settings", "producer", "client", "folder"],
)
def test_wrong_settings_are_refused_at_the_start_by_name(
    tmp_path: Path, settings: dict[str, str], words: list[str]
) -> None:
    proxy = ProxyProcess(tmp_path, bootstrap=UNREACHABLE, registry="http://127.0.0.1:1", settings=settings)
    with pytest.raises(ServiceFailed, match="ended before it was ready"), proxy:
        pass
    assert [word for word in words if word not in proxy.log_text()] == []
    assert "Traceback" not in proxy.log_text()


@pytest.mark.parametrize(
    "switched_off,gone,left",
    [("api.v2.enable", "/topics", "/v3/clusters"), ("api.v3.enable", "/v3/clusters", "/topics")],
)
def test_each_api_can_be_switched_off(
    broker: BrokerProcess, registry: RegistryProcess, tmp_path: Path, switched_off: str, gone: str, left: str
) -> None:
    settings = {switched_off: "false"}
    with ProxyProcess(tmp_path, bootstrap=broker.bootstrap, registry=registry.url, settings=settings) as proxy:
        assert httpx2.get(proxy.url + gone, timeout=30).status_code == 404
        assert httpx2.get(proxy.url + left, timeout=30).status_code == 200
        paths = httpx2.get(f"{proxy.url}/openapi.json", timeout=30).json()["paths"]
        assert (gone in paths, left in paths) == (False, True)


def test_metrics_show_what_is_open_and_in_flight(proxy: ProxyProcess) -> None:
    text = httpx2.get(f"{proxy.url}/metrics", timeout=30).text
    for name in (
        "records_in_flight",
        "consumer_instances",
        "streams",
        "readers",
        "untaken_bytes",
        "http_requests_total",
    ):
        assert f"caudal_rest_proxy_{name}" in text
