"""The REST API of a real worker, as scripts that were written for Kafka Connect use it."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.support.admin import create_topic, eventually
from tests.support.broker import BrokerProcess
from tests.support.connect import ConnectProcess

SOURCE = "org.apache.kafka.connect.file.FileStreamSourceConnector"
SINK = "org.apache.kafka.connect.file.FileStreamSinkConnector"
STRING = {
    "key.converter": "org.apache.kafka.connect.storage.StringConverter",
    "value.converter": "org.apache.kafka.connect.storage.StringConverter",
}


@pytest.fixture(scope="module")
def worker(broker: BrokerProcess, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ConnectProcess]:
    """A worker that leads, with its tasks in threads of its own."""
    directory = tmp_path_factory.mktemp("connect-rest")
    settings = {"task.processes": "0"}
    with ConnectProcess(directory, bootstrap=broker.bootstrap, group="rest", settings=settings) as process:
        yield process
        assert process.is_running, process.log_tail()


@pytest.fixture
def sink(worker: ConnectProcess, broker: BrokerProcess, name: str, tmp_path: Path) -> Iterator[dict[str, str]]:
    """A sink of one topic that exists; it is deleted in the end."""
    create_topic(broker, name)
    yield {"connector.class": SINK, "topics": name, "file": str(tmp_path / "out.txt"), **STRING}
    worker.ask("DELETE", f"/connectors/{name}")


def told(answer: httpx2.Response) -> tuple[int, Any]:
    return answer.status_code, answer.json() if answer.content else None


def test_the_worker_tells_what_it_is(worker: ConnectProcess) -> None:
    root = worker.json("GET", "/")
    assert set(root) == {"version", "commit", "kafka_cluster_id"}
    assert root["kafka_cluster_id"]
    health = worker.json("GET", "/health")
    assert health == {
        "status": "healthy",
        "message": "Worker has completed startup and is ready to handle requests.",
    }


def test_plugins_are_listed(worker: ConnectProcess) -> None:
    assert {SOURCE, SINK} <= {plugin["class"] for plugin in worker.json("GET", "/connector-plugins")}
    everything = worker.json("GET", "/connector-plugins?connectorsOnly=false")
    assert "org.apache.kafka.connect.transforms.Cast$Value" in {plugin["class"] for plugin in everything}


def test_every_plugin_that_is_listed_explains_its_keys(worker: ConnectProcess) -> None:
    for plugin in worker.json("GET", "/connector-plugins?connectorsOnly=false"):
        keys = worker.json("GET", f"/connector-plugins/{plugin['class']}/config")
        assert all(key["documentation"] for key in keys), plugin


def test_a_connector_lives_from_post_to_delete(worker: ConnectProcess, sink: dict[str, str], name: str) -> None:
    created = worker.ask("POST", "/connectors", {"name": name, "config": {**sink, "tasks.max": 1}})
    assert (created.status_code, created.headers["location"]) == (201, f"/connectors/{name}")
    assert created.json()["config"] == {**sink, "tasks.max": "1", "name": name}
    worker.wait_for(name, "RUNNING", tasks=1)
    info = worker.json("GET", f"/connectors/{name}")
    assert (info["tasks"], info["type"]) == ([{"connector": name, "task": 0}], "sink")
    assert worker.json("GET", f"/connectors/{name}/config") == info["config"]
    listed = worker.json("GET", "/connectors?expand=info&expand=status")
    assert listed[name] == {"info": info, "status": worker.status(name)}
    assert worker.json("GET", f"/connectors/{name}/tasks")[0]["id"] == {"connector": name, "task": 0}
    assert worker.json("GET", f"/connectors/{name}/tasks/0/status")["state"] == "RUNNING"
    again = worker.ask("POST", "/connectors", {"name": name, "config": sink})
    assert told(again) == (409, {"error_code": 409, "message": f"Connector {name} already exists"})
    assert told(worker.ask("DELETE", f"/connectors/{name}")) == (204, None)
    assert name not in worker.json("GET", "/connectors")
    assert worker.ask("GET", f"/connectors/{name}/status").status_code == 404


def test_a_configuration_is_put_and_patched(worker: ConnectProcess, sink: dict[str, str], name: str) -> None:
    created = worker.ask("PUT", f"/connectors/{name}/config", sink)
    assert (created.status_code, created.headers["location"]) == (201, f"/connectors/{name}")
    assert worker.ask("PUT", f"/connectors/{name}/config", {**sink, "tasks.max": 2}).status_code == 200
    patched = worker.json("PATCH", f"/connectors/{name}/config", {"tasks.max": None, "errors.log.enable": True})
    assert patched["config"] == {**sink, "errors.log.enable": "true", "name": name}


def test_what_is_wrong_is_told_all_at_once(worker: ConnectProcess, name: str) -> None:
    config = {"connector.class": SINK, "tasks.max": "many", "key.converter": "Nope"}
    answer = worker.ask("PUT", f"/connectors/{name}/config", config)
    message = answer.json()["message"]
    assert answer.status_code == 400
    assert message.startswith("Connector configuration is invalid and contains the following 5 error(s):\n")
    assert "Invalid value many for configuration tasks.max: Not a number of type INT\n" in message
    checked = worker.json("PUT", "/connector-plugins/FileStreamSink/config/validate", {**config, "name": name})
    assert checked["error_count"] == 5
    assert worker.ask("GET", f"/connectors/{name}").status_code == 404


def test_a_status_tells_the_version_of_the_connector(worker: ConnectProcess, sink: dict[str, str], name: str) -> None:
    worker.create(name, sink)
    status = worker.wait_for(name, "RUNNING", tasks=1)
    (listed,) = (p["version"] for p in worker.json("GET", "/connector-plugins") if p["class"] == SINK)
    assert (status["connector"]["version"], status["tasks"][0]["version"]) == (listed, listed)


def test_a_connector_is_paused_resumed_and_stopped(worker: ConnectProcess, sink: dict[str, str], name: str) -> None:
    worker.create(name, sink)
    worker.wait_for(name, "RUNNING", tasks=1)
    assert told(worker.ask("PUT", f"/connectors/{name}/pause")) == (202, None)
    worker.wait_for(name, "PAUSED", tasks=1)
    assert told(worker.ask("PUT", f"/connectors/{name}/resume")) == (202, None)
    worker.wait_for(name, "RUNNING", tasks=1)
    assert told(worker.ask("PUT", f"/connectors/{name}/stop")) == (204, None)
    eventually(lambda: worker.status(name)["connector"]["state"] == "STOPPED" and not worker.status(name)["tasks"])


def test_restarts_answer_as_kafka_connects(worker: ConnectProcess, sink: dict[str, str], name: str) -> None:
    worker.create(name, sink)
    worker.wait_for(name, "RUNNING", tasks=1)
    assert told(worker.ask("POST", f"/connectors/{name}/restart")) == (204, None)
    answer = worker.ask("POST", f"/connectors/{name}/restart?includeTasks=true")
    assert answer.status_code == 202
    states = [answer.json()["connector"]["state"], *(task["state"] for task in answer.json()["tasks"])]
    assert states == ["RESTARTING", "RESTARTING"]
    worker.wait_for(name, "RUNNING", tasks=1)
    assert told(worker.ask("POST", f"/connectors/{name}/tasks/0/restart")) == (204, None)
    worker.wait_for(name, "RUNNING", tasks=1)


def test_offsets_of_a_source_are_told_altered_and_reset(
    worker: ConnectProcess, broker: BrokerProcess, name: str, tmp_path: Path
) -> None:
    create_topic(broker, name)
    file = tmp_path / "in.txt"
    file.write_text("one\ntwo\n")
    worker.create(name, {"connector.class": SOURCE, "topic": name, "file": str(file), **STRING})
    part = {"filename": str(file)}
    known = [{"partition": part, "offset": {"position": 8}}]
    eventually(lambda: worker.json("GET", f"/connectors/{name}/offsets") == {"offsets": known})
    refused = worker.ask("PATCH", f"/connectors/{name}/offsets", {"offsets": known})
    assert refused.status_code == 400
    worker.ask("PUT", f"/connectors/{name}/stop")
    eventually(lambda: not worker.status(name)["tasks"])
    changed = [{"partition": part, "offset": {"position": 4}}]
    assert "message" in worker.json("PATCH", f"/connectors/{name}/offsets", {"offsets": changed})
    assert worker.json("GET", f"/connectors/{name}/offsets") == {"offsets": changed}
    assert "message" in worker.json("DELETE", f"/connectors/{name}/offsets")
    assert worker.json("GET", f"/connectors/{name}/offsets") == {"offsets": []}
    topics = worker.json("GET", f"/connectors/{name}/topics")
    assert topics == {name: {"topics": [name]}}
    assert told(worker.ask("PUT", f"/connectors/{name}/topics/reset")) == (202, None)
    eventually(lambda: worker.json("GET", f"/connectors/{name}/topics") == {name: {"topics": []}})
    worker.delete(name)


def test_secrets_are_filled_in_but_never_shown(
    worker: ConnectProcess, sink: dict[str, str], name: str, tmp_path: Path
) -> None:
    (tmp_path / "secrets.properties").write_text(f"path={tmp_path}/hidden.txt\n")
    place = f"${{file:{tmp_path}/secrets.properties:path}}"
    worker.create(name, {**sink, "file": place})
    worker.wait_for(name, "RUNNING", tasks=1)
    assert (tmp_path / "hidden.txt").exists()
    for path in ("", "/config", "/tasks", "/status"):
        assert "hidden.txt" not in worker.ask("GET", f"/connectors/{name}{path}").text
    assert worker.json("GET", f"/connectors/{name}/config")["file"] == place


def test_loggers_are_changed_in_this_worker(worker: ConnectProcess) -> None:
    changed = worker.json("PUT", "/admin/loggers/connect.runtime", {"level": "DEBUG"})
    assert "connect.runtime" in changed
    assert worker.json("GET", "/admin/loggers/connect.runtime")["level"] == "DEBUG"
    worker.json("PUT", "/admin/loggers/connect.runtime", {"level": "INFO"})


def test_loggers_are_changed_in_every_worker(worker: ConnectProcess) -> None:
    answer = worker.ask("PUT", "/admin/loggers/connect.executors?scope=cluster", {"level": "ERROR"})
    assert told(answer) == (204, None)
    eventually(lambda: worker.json("GET", "/admin/loggers/connect.executors")["level"] == "ERROR")
    worker.ask("PUT", "/admin/loggers/connect.executors?scope=cluster", {"level": "INFO"})


def test_a_configuration_is_tried_before_it_is_used(worker: ConnectProcess) -> None:
    config = {"connector.class": SINK, "topics": "t", "file": "/nowhere/at/all", **STRING}
    tried = worker.json("POST", "/connectors/dry-run", {"config": config, "records": [{"topic": "t", "value": "x"}]})
    assert tried["records"][0]["result"]["value"] == "x"


def test_a_follower_hands_changes_on_to_the_leader(
    worker: ConnectProcess, broker: BrokerProcess, sink: dict[str, str], name: str, tmp_path: Path
) -> None:
    settings = {"task.processes": "0"}
    with ConnectProcess(tmp_path, bootstrap=broker.bootstrap, group="rest", settings=settings) as follower:
        created = follower.ask("POST", "/connectors", {"name": name, "config": sink})
        assert (created.status_code, created.headers["location"]) == (201, f"/connectors/{name}")
        follower.wait_for(name, "RUNNING", tasks=1)
        refused = follower.ask("POST", "/connectors", {"name": name, "config": sink})
        assert refused.status_code == 409
        direct = follower.ask("PUT", f"/connectors/{name}/config?forward=false", sink)
        assert direct.status_code == 409
        assert told(follower.ask("DELETE", f"/connectors/{name}")) == (204, None)
        assert name not in worker.json("GET", "/connectors")
