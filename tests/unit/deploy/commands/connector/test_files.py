import io
import json
from pathlib import Path

import pytest
import typer

from deploy.commands.connector.files import MAX_FILE_CHARACTERS, Configuration, parse_configuration, read_configuration

CONFIG = {"connector.class": "FileStreamSink", "topics": "orders", "tasks.max": 2}


@pytest.mark.parametrize(
    "value,expected",
    [
        ({"name": "n", "config": CONFIG}, Configuration(name="n", config=CONFIG)),
        ({"config": {"name": "n", **CONFIG}}, Configuration(name="n", config={"name": "n", **CONFIG})),
        ({"name": "n", **CONFIG}, Configuration(name="n", config={"name": "n", **CONFIG})),
        (CONFIG, Configuration(name=None, config=CONFIG)),
        ({"name": "n", "config": CONFIG, "tasks": [], "type": "sink"}, Configuration(name="n", config=CONFIG)),
        (
            {"name": "n", "config": CONFIG, "initial_state": "PAUSED", "initial_offsets": []},
            Configuration(name="n", config=CONFIG, initial_state="PAUSED", initial_offsets=[]),
        ),
    ],
)
def test_a_configuration_is_read_in_every_shape(value: object, expected: Configuration) -> None:
    assert parse_configuration(json.dumps(value)) == expected


@pytest.mark.parametrize(
    "text,hint",
    [
        ("{", "not JSON"),
        ("[" * 100_000, "not JSON"),
        ("[]", "must be an object"),
        ('{"name": "n", "config": {}, "confg": 1}', "confg does not belong beside config"),
        ('{"name": "n", "transforms": ["a"]}', "transforms: values"),
        ('{"name": "n", "config": {}, "initial_offsets": {}}', "must be a list"),
    ],
)
def test_text_that_is_not_a_configuration_is_refused(text: str, hint: str) -> None:
    with pytest.raises(ValueError, match=hint):
        parse_configuration(text)


def test_the_body_holds_what_was_given_and_no_more() -> None:
    assert Configuration(name="n", config=CONFIG).body == {"name": "n", "config": CONFIG}
    begun = Configuration(name="n", config=CONFIG, initial_state="STOPPED", initial_offsets=[])
    assert begun.body == {"name": "n", "config": CONFIG, "initial_state": "STOPPED", "initial_offsets": []}


def test_a_given_name_wins(tmp_path: Path) -> None:
    file = tmp_path / "sink.json"
    file.write_text(json.dumps({"name": "n", **CONFIG}))
    assert read_configuration(str(file), name="m") == Configuration(name="m", config={"name": "m", **CONFIG})


def test_properties_files_of_kafka_are_read(tmp_path: Path) -> None:
    file = tmp_path / "connect-file-sink.properties"
    file.write_text("# a sink\nname=local\nconnector.class=FileStreamSink\ntopics=connect-test\n")
    expected = {"name": "local", "connector.class": "FileStreamSink", "topics": "connect-test"}
    assert read_configuration(str(file)) == Configuration(name="local", config=expected)


@pytest.mark.parametrize(
    "text,hint", [("", "is empty"), ("x" * (MAX_FILE_CHARACTERS + 1), "is longer than"), ("x", "not JSON")]
)
def test_stdin_that_cannot_be_read_is_reported(text: str, hint: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(text))
    with pytest.raises(typer.BadParameter, match=f"stdin.*{hint}"):
        read_configuration("-")
