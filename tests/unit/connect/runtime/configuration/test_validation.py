"""A configuration is checked whole, and errors have Kafka Connect's messages."""

from pathlib import Path
from typing import Any

import msgspec
import pytest

from connect.runtime.configuration.config_infos import ConfigInfo, ConfigInfos
from connect.runtime.configuration.config_providers import ConfigProviders
from connect.runtime.configuration.validation import Validation, plugin_keys, validate
from connect.runtime.errors import BadRequest
from connect.settings import ConnectSettings
from tests.support import connect_plugins as quiet

PLUGINS = quiet.quiet_plugins()
JSON = "org.apache.kafka.connect.json.JsonConverter"
SINK = {"name": "a-sink", "connector.class": "QuietSink", "tasks.max": "1", "topics": "t1"}
SOURCE = {"name": "a-source", "connector.class": "QuietSource", "tasks.max": "1", "topic": "t1"}
EXACT = SOURCE | {"connector.class": "ExactSource"}
MASK = {"transforms": "m", "transforms.m.type": "com.example.Mask$Value", "transforms.m.fields": "x"}


def checked(config: dict[str, Any], **settings: str) -> Validation:
    chosen = ConnectSettings.parse({key.replace("_", "."): value for key, value in settings.items()})
    return validate(config, plugins=PLUGINS, providers=ConfigProviders(chosen), settings=chosen)


def errors_of(validation: Validation) -> dict[str, list[str]]:
    return {info.value.name: info.value.errors for info in validation.infos.configs if info.value.errors}


def entry(infos: ConfigInfos, name: str) -> ConfigInfo:
    (found,) = (info for info in infos.configs if info.value.name == name)
    return found


@pytest.mark.parametrize("config", [SINK, SOURCE, EXACT, SINK | MASK])
def test_a_right_configuration_has_no_errors(config: dict[str, str]) -> None:
    validation = checked(config)
    assert (validation.error_count, errors_of(validation), validation.infos.warnings) == (0, {}, [])
    validation.require()


NO_TOPICS = "Must configure one of topics or topics.regex"
BOTH_TOPICS = "topics and topics.regex are mutually exclusive options, but both are set."


@pytest.mark.parametrize(
    ("config", "errors"),
    [
        # As ConnectorValidationIntegrationTest of Apache Kafka has it, in its order.
        (SINK | {"topics": ""}, {"topics": [NO_TOPICS], "topics.regex": [NO_TOPICS]}),
        (SINK | {"topics.regex": "r.*"}, {"topics": [BOTH_TOPICS], "topics.regex": [BOTH_TOPICS]}),
        (SINK | {"errors.deadletterqueue.topic.name": "t1"}, {"errors.deadletterqueue.topic.name": ["DLQ topic"]}),
        (
            SINK | {"topics": "", "topics.regex": "r.*", "errors.deadletterqueue.topic.name": "ruh.roh"},
            {"errors.deadletterqueue.topic.name": ["DLQ topic"]},
        ),
        (
            SINK | {"name": "cluster"},
            {
                "name": [
                    (
                        "Consumer group for sink connector named cluster conflicts with Connect worker group "
                        "connect-cluster"
                    )
                ]
            },
        ),
        (
            SINK | {"consumer.override.group.id": "connect-cluster"},
            {
                "consumer.override.group.id": [
                    "Consumer group connect-cluster conflicts with Connect worker group connect-cluster"
                ]
            },
        ),
        (SOURCE | {"topic.creation.groups": "g1, g2, g1"}, {"topic.creation.groups": ["names that differ"]}),
        (SINK | MASK | {"transforms": "m, m"}, {"transforms": ["names that differ"]}),
        (
            SINK | MASK | {"transforms.m.type": "Nope"},
            {"transforms.m.type": ["Invalid value Nope for configuration transforms.m.type: Class Nope could not"]},
        ),
        (
            SINK | MASK | {"transforms.m.type": "com.example.QuietSinkConnector"},
            {"transforms.m.type": ["could not be found"]},
        ),
        (
            SINK | MASK | {"transforms.m.negate": "true"},
            {
                "transforms.m.negate": [
                    (
                        "Config 'transforms.m.negate' was provided but there is no config 'transforms.m.predicate' "
                        "defining a predicate to be negated."
                    )
                ]
            },
        ),
        (SINK | {"predicates": "p,p", "predicates.p.type": "Always"}, {"predicates": ["names that differ"]}),
        (SINK | {"predicates": "p", "predicates.p.type": "Nope"}, {"predicates.p.type": ["Class Nope could not be"]}),
        (SINK | {"predicates": "p", "predicates.p.type": quiet.JSON}, {"predicates.p.type": ["could not be found"]}),
        (SINK | {"key.converter": "Nope"}, {"key.converter": ["Class Nope could not be found."]}),
        (SINK | {"key.converter": "QuietSink"}, {"key.converter": ["Class QuietSink could not be found."]}),
        (SINK | {"key.converter": "Json", "key.converter.fail": "true"}, {"key.converter": ["this converter fails"]}),
        (
            SINK | {"key.converter": "Json", "key.converter.schemas.enable": "perhaps"},
            {
                "key.converter.schemas.enable": [
                    (
                        "Invalid value perhaps for configuration key.converter.schemas.enable: "
                        "Expected value to be either true or false"
                    )
                ]
            },
        ),
        (SINK | {"header.converter": "Nope"}, {"header.converter": ["Class Nope could not be found."]}),
        (SINK | {"header.converter": "QuietSink"}, {"header.converter": ["Class QuietSink could not be found."]}),
        # Each value by itself.
        (
            SINK | {"tasks.max": "many"},
            {
                "tasks.max": [
                    "Invalid value many for configuration tasks.max: Not a number of type INT",
                    "Invalid value null for configuration tasks.max: Value must be non-null",
                ]
            },
        ),
        (
            SINK | {"tasks.max": "0"},
            {"tasks.max": ["Invalid value 0 for configuration tasks.max: Value must be at least 1"]},
        ),
        (
            SINK | {"errors.tolerance": "some"},
            {
                "errors.tolerance": [
                    "Invalid value some for configuration errors.tolerance: String must be one of: none, all"
                ]
            },
        ),
        (
            SINK | {"batch.size": "101"},
            {"batch.size": ["Invalid value 101 for configuration batch.size: Value must be no more than 100"]},
        ),
        (
            SINK | {"batch": "0"},
            {"batch.size": ["Invalid value 0 for configuration batch.size: Value must be at least 1"]},
        ),
        (
            {"connector.class": "QuietSink", "topics": "a"},
            {"name": ['Missing required configuration "name" which has no default value.']},
        ),
        (SINK | {"name": ""}, {"name": ["Invalid value  for configuration name: String may not be empty"]}),
        (
            SINK | {"name": "a\x01b"},
            {
                "name": [
                    (
                        "Invalid value a\x01b for configuration name: String may not contain control sequences "
                        "but had the following ASCII chars: 1"
                    )
                ]
            },
        ),
        (SINK | {"file": None}, {"file": ["Null value can not be supplied as the configuration value."]}),
        (SINK | {"nobody": None}, {"nobody": ["Null value can not be supplied as the configuration value."]}),
        (
            {key: value for key, value in SOURCE.items() if key != "topic"},
            {"topic": ['Missing required configuration "topic" which has no default value.']},
        ),
        (
            SINK | MASK | {"transforms.m.fields": None},
            {"transforms.m.fields": ["Null value can not be supplied as the configuration value."]},
        ),
        (
            SINK | {"transforms": "m"},
            {"transforms.m.type": ['Missing required configuration "transforms.m.type" which has no default value.']},
        ),
        (
            SINK | MASK | {"transforms.m.times": "0"},
            {"transforms.m.times": ["Invalid value 0 for configuration transforms.m.times: Value must be at least 1"]},
        ),
        (SINK | MASK | {"transforms.m.predicate": "p"}, {"transforms.m.predicate": ["must be one of predicates="]}),
        # What the connector's own code says.
        (SINK | {"file": "refused"}, {"file": ["cannot write refused"]}),
        (SINK | {"file": "down"}, {"connector.class": ["the other side is down"]}),
        (SINK | {"file": "broken"}, {"connector.class": ["RuntimeError: a bug"]}),
        # Exactly once.
        (
            SOURCE | {"exactly.once.support": "required"},
            {
                "exactly.once.support": [
                    "The connector does not support exactly-once semantics with the provided configuration."
                ]
            },
        ),
        (SOURCE | {"transaction.boundary": "connector"}, {"transaction.boundary": ["connector-defined transaction"]}),
        (EXACT | {"exactly.once.support": "required", "transaction.boundary": "connector"}, {}),
        # Topics that sources create.
        (
            SOURCE | {"topic.creation.groups": "g", "topic.creation.g.include": "("},
            {
                "topic.creation.default.replication.factor": ["Missing required configuration"],
                "topic.creation.default.partitions": ["Missing required configuration"],
                "topic.creation.g.include": ["valid regular expressions"],
            },
        ),
        (
            SOURCE | {"topic.creation.default.replication.factor": "-1", "topic.creation.default.partitions": "0"},
            {"topic.creation.default.partitions": ["Value must be at least 1, or -1 for the default"]},
        ),
    ],
)
def test_what_is_wrong_is_told_at_its_key(config: dict[str, Any], errors: dict[str, list[str]]) -> None:
    validation = checked(config)
    found = errors_of(validation)
    assert {key: len(error) for key, error in found.items()} == {key: len(error) for key, error in errors.items()}
    for key, parts in errors.items():
        for error, part in zip(found[key], parts, strict=True):
            assert part in error
    assert validation.error_count == sum(map(len, errors.values()))


def test_a_worker_without_exactly_once_refuses_who_requires_it() -> None:
    validation = checked(EXACT | {"exactly.once.support": "required"}, exactly_once_source_support="disabled")
    message = "This worker does not have exactly-once source support enabled."
    assert errors_of(validation) == {"exactly.once.support": [message]}


@pytest.mark.parametrize(
    ("config", "refused"),
    [
        (SOURCE | {"producer.override.acks": "1"}, ["producer.override.acks"]),
        (SOURCE | {"consumer.override.acks": "1"}, []),
        (SINK | {"producer.override.acks": "1"}, []),
        (SINK | {"consumer.override.acks": "1"}, ["consumer.override.acks"]),
        (
            SINK
            | {
                "errors.deadletterqueue.topic.name": "dead",
                "producer.override.acks": "1",
                "admin.override.acks": "1",
            },
            ["producer.override.acks", "admin.override.acks"],
        ),
    ],
)
def test_overrides_are_checked_of_clients_that_the_connector_uses(config: dict[str, str], refused: list[str]) -> None:
    validation = checked(config, connector_client_config_override_policy="None")
    assert list(errors_of(validation)) == refused


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({}, "Connector config {} contains no connector type"),
        ({"name": "a", "password": "hush"}, "Connector config {name, password} contains no connector type"),
        ({"connector.class": None}, "contains no connector type"),
        (
            {"connector.class": "Nope"},
            "Failed to find any class that implements Connector and which name matches Nope, available connectors are",
        ),
    ],
)
def test_without_a_known_class_there_is_nothing_to_check(config: dict[str, Any], message: str) -> None:
    with pytest.raises(BadRequest) as raised:
        checked(config)
    assert message in raised.value.message


def test_the_refusal_tells_all_errors() -> None:
    validation = checked(SINK | {"tasks.max": "0", "batch.size": "x"})
    with pytest.raises(BadRequest) as raised:
        validation.require()
    assert raised.value.message == (
        "Connector configuration is invalid and contains the following 3 error(s):\n"
        "Invalid value 0 for configuration tasks.max: Value must be at least 1\n"
        "Invalid value x for configuration batch.size: Not a number of type INT\n"
        "Invalid value null for configuration batch.size: Value must be non-null\n"
        "You can also find the above list of errors at the endpoint "
        "`/connector-plugins/{connectorType}/config/validate`"
    )


def test_a_key_is_shown_with_its_definition_and_value() -> None:
    infos = checked(SINK | {"file": " out.txt "}).infos
    assert msgspec.to_builtins(entry(infos, "file")) == {
        "definition": {
            "name": "file",
            "type": "STRING",
            "required": False,
            "default_value": "",
            "importance": "HIGH",
            "documentation": "Where records go.",
            "group": "File",
            "order": 1,
            "width": "NONE",
            "display_name": "Output file",
            "dependents": (),
        },
        "value": {"name": "file", "value": "out.txt", "recommended_values": [], "errors": [], "visible": True},
    }


@pytest.mark.parametrize(
    ("key", "value", "default"),
    [
        ("columns", "a,b", "a,b"),
        ("tasks.max", "1", "1"),
        ("errors.log.enable", "false", "false"),
        ("topics.regex", "", ""),
        ("key.converter", JSON, JSON),
        ("name", "a-sink", None),
    ],
)
def test_values_and_defaults_are_text(key: str, value: str | None, default: str | None) -> None:
    shown = entry(checked(SINK).infos, key)
    assert shown.definition is not None
    assert (shown.value.value, shown.definition.default_value) == (value, default)


def test_groups_come_in_the_order_of_the_keys() -> None:
    infos = checked(SINK | MASK).infos
    assert infos.groups == ["Common", "Transforms", "Predicates", "Error Handling", "Transforms: m", "File"]


def test_keys_of_transforms_and_converters_are_prefixed() -> None:
    infos = checked(SINK | MASK | {"value.converter": "Json"}).infos
    shown = entry(infos, "transforms.m.times")
    assert shown.definition is not None
    assert (shown.definition.group, shown.definition.order, shown.value.value) == ("Transforms: m", 5, "1")
    assert entry(infos, "value.converter.schemas.enable").value.value == "true"
    assert not any(info.value.name.startswith("key.converter.") for info in infos.configs)


def test_classes_to_choose_from_are_recommended() -> None:
    infos = checked(SINK | MASK).infos
    assert quiet.JSON in entry(infos, "key.converter").value.recommended_values
    assert quiet.SIMPLE in entry(infos, "header.converter").value.recommended_values
    assert "com.example.Mask$Value" in entry(infos, "transforms.m.type").value.recommended_values
    assert entry(infos, "mode").value.recommended_values == ["append"]


def test_passwords_are_hidden() -> None:
    config = SINK | {"secret": "hush", "consumer.override.sasl.jaas.config": "x username=u password=hush;"}
    validation = checked(config)
    assert entry(validation.infos, "secret").value.value == "[hidden]"
    assert b"hush" not in msgspec.json.encode(validation.infos)


def test_what_was_filled_in_is_checked_but_never_shown(tmp_path: Path) -> None:
    (tmp_path / "hidden").write_text("hush-hush")
    place = f"${{dir:{tmp_path}:hidden}}"
    config = SINK | {"file": place, "batch.size": place, "mode": place, "secret": place, "tasks.max": place}
    validation = checked(config)
    assert entry(validation.infos, "file").value.value == place
    assert entry(validation.infos, "secret").value.value == "[hidden]"
    assert errors_of(validation)["mode"] == [
        f"Invalid value {place} for configuration mode: String must be one of: append, replace"
    ]
    assert b"hush" not in msgspec.json.encode(validation.infos)


def test_what_a_connector_says_of_a_secret_is_hidden_too(tmp_path: Path) -> None:
    (tmp_path / "hidden").write_text("refused")
    validation = checked(SINK | {"file": f"${{dir:{tmp_path}:hidden}}"})
    assert errors_of(validation) == {"file": [f"cannot write ${{dir:{tmp_path}:hidden}}"]}


def test_a_placeholder_that_cannot_be_filled_in_is_an_error_of_its_key() -> None:
    validation = checked(SINK | {"file": "${file:/nothing:a}", "tasks.max": "0"})
    assert sorted(errors_of(validation)) == ["file", "tasks.max"]


@pytest.mark.parametrize(
    ("config", "warned"),
    [
        ({"flie": "x"}, {"flie": "unknown configuration; did you mean file?"}),
        ({"quite.other": "x"}, {"quite.other": "unknown configuration: it has no effect"}),
        ({"batch": "5"}, {}),
        ({"errors.tolerance": "all"}, {"errors.tolerance": "bad records are dropped without a trace"}),
        ({"errors.tolerance": "all", "errors.log.enable": "true"}, {}),
        ({"errors.tolerance": "all", "errors.deadletterqueue.topic.name": "dead"}, {}),
        (
            {"value.converter.schemas.enable": "false"},
            {"value.converter.schemas.enable": "has no effect unless value.converter is set in this connector, too"},
        ),
        ({"value.converter": "Json", "value.converter.whatever": "x"}, {}),
        ({"producer.override.acks": "1"}, {"producer.override.acks": "has no effect: this connector uses no producer"}),
    ],
)
def test_what_is_odd_is_a_warning(config: dict[str, str], warned: dict[str, str]) -> None:
    validation = checked(SINK | config)
    found = {warning.name: warning.message for warning in validation.infos.warnings}
    assert validation.error_count == 0
    assert list(found) == list(warned)
    assert all(part in found[key] for key, part in warned.items())


def test_a_plugins_keys_are_its_own_and_then_those_of_its_kind() -> None:
    names = [key.name for key in plugin_keys(quiet.QuietSinkConnector)]
    assert names[:5] == ["file", "batch.size", "mode", "secret", "columns"]
    assert {"name", "connector.class", "tasks.max", "topics", "topics.regex"} < set(names)
    assert [key.name for key in plugin_keys(quiet.MaskValue)] == ["fields", "times"]
    assert "exactly.once.support" in [key.name for key in plugin_keys(quiet.QuietSourceConnector)]


STRINGS = "org.apache.kafka.connect.storage.StringConverter"


def test_converters_that_are_not_named_are_the_workers() -> None:
    info = entry(checked(SINK, value_converter=STRINGS).infos, "value.converter")
    assert info.definition is not None
    assert (info.value.value, info.definition.default_value) == (STRINGS, STRINGS)


@pytest.mark.parametrize("key", ["key.converter", "value.converter", "header.converter"])
def test_a_converter_without_a_name_is_refused(key: str) -> None:
    message = f"Invalid value  for configuration {key}: Class  could not be found."
    assert errors_of(checked(SINK | {key: ""}))[key][0].startswith(message)


@pytest.mark.parametrize(("key", "value"), [("tasks.max", "0"), ("errors.tolerance", "some")])
def test_what_was_given_is_shown_also_when_it_is_wrong(key: str, value: str) -> None:
    info = entry(checked(SINK | {key: value}).infos, key)
    assert (info.value.value, len(info.value.errors)) == (value, 1)


@pytest.mark.parametrize(
    ("config", "message"),
    [
        (SINK, "included in the list of topics ('topics=[t1]') consumed by the connector"),
        (
            SINK | {"topics": "", "topics.regex": "t.*"},
            "matched by the regex for the topics ('topics.regex=t.*') consumed by the connector",
        ),
    ],
)
def test_dead_letters_that_would_be_read_again_are_refused(config: dict[str, str], message: str) -> None:
    key = "errors.deadletterqueue.topic.name"
    assert errors_of(checked(config | {key: "t1"})) == {key: [f"The DLQ topic 't1' may not be {message}"]}


@pytest.mark.parametrize(
    ("key", "value"),
    [("exactly.once.support", "REQUESTED"), ("transaction.boundary", "Interval"), ("transaction.boundary", "POLL")],
)
def test_words_about_exactly_once_are_taken_in_letters_of_any_case(key: str, value: str) -> None:
    assert errors_of(checked(EXACT | {key: value})) == {}


@pytest.mark.parametrize(
    ("key", "kind", "group", "width", "title"),
    [
        # As Kafka Connect 4.1.0 answers them.
        ("name", "STRING", "Common", "MEDIUM", "Connector name"),
        ("connector.class", "STRING", "Common", "LONG", "Connector class"),
        ("tasks.max", "INT", "Common", "SHORT", "Tasks max"),
        ("tasks.max.enforce", "BOOLEAN", "Common", "SHORT", "Enforce tasks max"),
        ("key.converter", "CLASS", "Common", "SHORT", "Key converter class"),
        ("value.converter", "CLASS", "Common", "SHORT", "Value converter class"),
        ("header.converter", "CLASS", "Common", "SHORT", "Header converter class"),
        ("transforms", "LIST", "Transforms", "LONG", "Transforms"),
        ("predicates", "LIST", "Predicates", "LONG", "Predicates"),
        ("config.action.reload", "STRING", "Common", "MEDIUM", "Reload Action"),
        ("errors.retry.timeout", "LONG", "Error Handling", "MEDIUM", "Retry Timeout for Errors"),
        ("errors.retry.delay.max.ms", "LONG", "Error Handling", "MEDIUM", "Maximum Delay Between Retries for Errors"),
        ("errors.tolerance", "STRING", "Error Handling", "SHORT", "Error Tolerance"),
        ("errors.log.enable", "BOOLEAN", "Error Handling", "SHORT", "Log Errors"),
        ("errors.log.include.messages", "BOOLEAN", "Error Handling", "SHORT", "Log Error Details"),
        ("topic.creation.groups", "LIST", "Topic Creation", "LONG", "Topic Creation Groups"),
        ("exactly.once.support", "STRING", "Exactly Once Support", "SHORT", "Exactly once support"),
        ("transaction.boundary", "STRING", "Exactly Once Support", "SHORT", "Transaction Boundary"),
        (
            "transaction.boundary.interval.ms",
            "LONG",
            "Exactly Once Support",
            "SHORT",
            "Transaction boundary interval",
        ),
        ("offsets.storage.topic", "STRING", "offsets.topic", "LONG", "Offsets topic"),
        ("topics", "LIST", "Common", "LONG", "Topics"),
        ("topics.regex", "STRING", "Common", "LONG", "Topics regex"),
        ("errors.deadletterqueue.topic.name", "STRING", "Error Handling", "MEDIUM", "Dead Letter Queue Topic Name"),
        (
            "errors.deadletterqueue.topic.replication.factor",
            "SHORT",
            "Error Handling",
            "MEDIUM",
            "Dead Letter Queue Topic Replication Factor",
        ),
        (
            "errors.deadletterqueue.context.headers.enable",
            "BOOLEAN",
            "Error Handling",
            "MEDIUM",
            "Enable Error Context Headers",
        ),
    ],
)
def test_forms_show_the_keys_of_every_connector_as_they_do_of_kafka_connect(
    key: str, kind: str, group: str, width: str, title: str
) -> None:
    known = [info for config in (SINK, SOURCE) for info in checked(config).infos.configs if info.value.name == key]
    for info in known:
        definition = info.definition
        assert definition is not None
        shown = (definition.type, definition.group, definition.width, definition.display_name)
        assert shown == (kind, group, width, title)
    assert known
