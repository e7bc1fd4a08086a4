"""The pipeline of a sink as a text for other processes."""

import json

import pytest

from connect.runtime.models import TaskId
from connect.runtime.tasks.steps import Steps, steps_of
from connect.settings import ConnectSettings


def test_steps_are_the_same_after_they_were_text() -> None:
    settings = ConnectSettings.parse({"value.converter.schema.registry.url": "http://r", "spark.master": "x"})
    steps = steps_of(TaskId("lake", 2), settings, resolved={"name": "lake"}, secrets={"hunter2": "${env:X}"})
    assert Steps.read(steps.text()) == steps
    assert ConnectSettings.parse(steps.settings).value_converter_properties == (("schema.registry.url", "http://r"),)


def test_what_is_for_kafka_clients_alone_is_left_out() -> None:
    resolved = {"topics": "a", "consumer.override.sasl.password": "hunter2", "producer.override.acks": "all"}
    settings = ConnectSettings.parse({"client.sasl.password": "hunter2", "spark.secret": "hunter2"})
    text = steps_of(TaskId("lake", 0), settings, resolved=resolved, secrets={}).text()
    assert "hunter2" not in text
    assert json.loads(text)["config"] == {"topics": "a"}


@pytest.mark.parametrize("text", ["", "null", '{"task": {"connector": "a"}}'])
def test_other_texts_are_refused(text: str) -> None:
    with pytest.raises(ValueError):
        Steps.read(text)
