"""A configuration is tried with records before there is a connector."""

import base64
from pathlib import Path
from typing import Any

import pytest

from connect.runtime.configuration.config_providers import ConfigProviders
from connect.runtime.configuration.plugins import Plugins
from connect.runtime.dry_run import DryRun, Outcome, Sample
from connect.runtime.errors import BadRequest
from connect.settings import ConnectSettings
from tests.support.connect_api import SINK, Api

FILE_SINK = {
    "name": "try",
    "connector.class": "FileStreamSink",
    "topics": "t",
    "file": "out.txt",
    "value.converter": "org.apache.kafka.connect.json.JsonConverter",
    "value.converter.schemas.enable": "false",
    "key.converter": "org.apache.kafka.connect.storage.StringConverter",
}
FILE_SOURCE = {"name": "try", "connector.class": "FileStreamSource", "topic": "t", "file": "in.txt"}
HOIST = {
    "transforms": "h,r",
    "transforms.h.type": "org.apache.kafka.connect.transforms.HoistField$Value",
    "transforms.h.field": "it",
    "transforms.r.type": "org.apache.kafka.connect.transforms.RegexRouter",
    "transforms.r.regex": "(.*)",
    "transforms.r.replacement": "new-$1",
}
DROP = {"transforms": "d", "transforms.d.type": "org.apache.kafka.connect.transforms.Filter"}


@pytest.fixture(scope="module")
def dry_run() -> DryRun:
    settings = ConnectSettings()
    return DryRun(plugins=Plugins.load(), providers=ConfigProviders(settings), settings=settings)


def only(outcomes: list[Outcome]) -> Outcome:
    (outcome,) = outcomes
    return outcome


def test_a_record_of_a_sink_is_converted_and_transformed(dry_run: DryRun) -> None:
    sample = Sample(topic="t", key=b"k", value=b'{"id": 5}', timestamp=7, headers=[("h", b"1")])
    outcome = only(dry_run(FILE_SINK | HOIST, [sample]))
    assert [(step.name, step.record.value if step.record else None) for step in outcome.steps] == [
        ("h", {"it": {"id": 5}}),
        ("r", {"it": {"id": 5}}),
    ]
    assert outcome.steps[1].class_name == "org.apache.kafka.connect.transforms.RegexRouter"
    assert outcome.result is not None
    assert (outcome.result.topic, outcome.result.key, outcome.result.timestamp) == ("new-t", "k", 7)
    assert outcome.result.key_schema == {"type": "string", "optional": True}
    assert [name for name, _ in outcome.result.headers] == ["h"]
    assert (outcome.dropped, outcome.error) == (False, None)


def test_a_record_of_a_source_is_transformed_alone(dry_run: DryRun) -> None:
    outcome = only(dry_run(FILE_SOURCE | HOIST, [Sample(topic="t", value="line")]))
    assert outcome.result is not None
    assert (outcome.result.value, outcome.result.topic, outcome.result.partition) == ({"it": "line"}, "new-t", None)


def test_a_record_that_is_dropped_has_no_result(dry_run: DryRun) -> None:
    outcome = only(dry_run(FILE_SINK | DROP, [Sample(topic="t", value=b"1")]))
    assert (outcome.dropped, outcome.result, outcome.steps[0].record) == (True, None, None)


def test_each_record_fails_by_itself(dry_run: DryRun) -> None:
    bad, good = dry_run(FILE_SINK, [Sample(topic="t", value=b"{"), Sample(topic="t", value=b"{}")])
    assert bad.error is not None
    assert (bad.error.stage, bad.error.exception) == (
        "VALUE_CONVERTER",
        "org.apache.kafka.connect.errors.DataException",
    )
    assert bad.error.class_name == "org.apache.kafka.connect.json.JsonConverter"
    assert (good.error, good.result is not None) == (None, True)


def test_a_transform_that_fails_is_named(dry_run: DryRun) -> None:
    config = FILE_SINK | {
        "transforms": "c",
        "transforms.c.type": "org.apache.kafka.connect.transforms.Cast$Value",
        "transforms.c.spec": "id:int32",
    }
    outcome = only(dry_run(config, [Sample(topic="t", value=b'{"id": "many"}')]))
    assert outcome.error is not None
    assert (outcome.error.stage, outcome.result, outcome.steps) == ("TRANSFORMATION", None, [])


def test_a_wrong_configuration_is_refused(dry_run: DryRun) -> None:
    with pytest.raises(BadRequest, match="Value must be at least 1"):
        dry_run(FILE_SINK | {"tasks.max": "0"}, [])


def test_what_placeholders_stand_for_is_never_shown(dry_run: DryRun, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("hush")
    place = f"${{dir:{tmp_path}:secret}}"
    config = FILE_SINK | {
        "transforms": "i",
        "transforms.i.type": "org.apache.kafka.connect.transforms.InsertField$Value",
        "transforms.i.static.field": "it",
        "transforms.i.static.value": place,
    }
    outcome = only(dry_run(config, [Sample(topic="t", value=b"{}")]))
    assert outcome.result is not None
    assert outcome.result.value == {"it": place}


QUIET = {**SINK, "name": "try"}


@pytest.mark.parametrize(
    ("record", "value"),
    [
        ({"value": "text"}, b"text"),
        ({"value": {"a": [1, None]}}, b'{"a":[1,null]}'),
        ({"value": None}, None),
        ({"value": base64.b64encode(b"\xff\x00").decode(), "encoding": "base64"}, b"\xff\x00"),
    ],
)
async def test_values_are_text_json_or_base64(api: Api, record: dict[str, Any], value: bytes | None) -> None:
    answer = await api.post("/connectors/dry-run", json={"config": QUIET, "records": [record]})
    assert answer.status_code == 200
    (outcome,) = answer.json()["records"]
    shown = outcome["result"]["value"]
    assert (None if shown is None else base64.b64decode(shown)) == value


async def test_a_dead_letter_can_be_tried_again(api: Api) -> None:
    (letter,) = (await api.get("/connectors/one/dlq")).json()["records"]
    answer = await api.post("/connectors/dry-run", json={"config": QUIET, "records": [letter]})
    assert answer.json()["records"][0]["error"] is None


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({"config": {}}, "contains no connector type"),
        ({"config": {"connector.class": "Nope"}}, "which name matches Nope"),
        ({"config": QUIET, "records": [{"value": "%", "encoding": "base64"}]}, "must be base64"),
        ({"config": QUIET, "records": [{"topic": ""}]}, "Body records.0.topic"),
        ({"config": QUIET, "records": [{}] * 101}, "Body records"),
        ({"config": QUIET | {"tasks.max": "0"}}, "Value must be at least 1"),
    ],
)
async def test_what_cannot_be_tried_is_answered_with_400(api: Api, body: dict[str, Any], message: str) -> None:
    answer = await api.post("/connectors/dry-run", json=body)
    assert answer.status_code == 400
    assert message in answer.json()["message"]
