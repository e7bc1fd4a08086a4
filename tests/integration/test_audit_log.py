"""The audit log of a running broker: changes by clients, with what became of them and without values."""

import json
from pathlib import Path
from typing import Any

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, NewTopic

from tests.support.broker import BrokerProcess


def test_changes_are_in_the_audit_log_once_with_their_outcome(tmp_path: Path) -> None:
    file = tmp_path / "audit.log"
    with BrokerProcess(tmp_path / "broker", settings={"audit.log.file": str(file)}) as process:
        admin = AdminClient({"bootstrap.servers": process.bootstrap})
        for _ in range(2):
            _outcomes(admin.create_topics([NewTopic("orders", 2, config={"retention.ms": "424242"})]))
        change = ConfigEntry("retention.ms", "434343", incremental_operation=AlterConfigOpType.SET)
        topic = ConfigResource(ConfigResource.Type.TOPIC, "orders", incremental_configs=[change])
        _outcomes(admin.incremental_alter_configs([topic]))
        _outcomes(admin.delete_topics(["orders"]))
        admin.list_topics(timeout=10)
        process.stop()
    lines = file.read_text().splitlines()
    events = [json.loads(line) for line in lines]
    found = [(event["api"], event["outcome"]) for event in events if event["principal"] == "User:ANONYMOUS"]
    assert found == [
        ("CreateTopics", "ok"),
        ("CreateTopics", "failed"),
        ("IncrementalAlterConfigs", "ok"),
        ("DeleteTopics", "ok"),
    ]
    assert events[1]["errors"] == ["TOPIC_ALREADY_EXISTS"]
    assert all(event["host"] == "127.0.0.1" and "orders" in line for event, line in zip(events, lines, strict=True))
    assert "424242" not in file.read_text()
    assert "434343" not in file.read_text()


def _outcomes(futures: dict[Any, Any]) -> None:
    for future in futures.values():
        try:
            future.result(15)
        except KafkaException:
            continue
