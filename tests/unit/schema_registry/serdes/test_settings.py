import pytest

from schema_registry.client.settings import InvalidSettings
from schema_registry.serdes.settings import IdPlace, SerializerSettings, parse
from schema_registry.serdes.subject_names import SubjectNameStrategy


def test_one_map_tells_where_the_registry_is_and_how_to_use_it() -> None:
    client, serializer = parse(
        {
            "schema.registry.url": "http://a:1",
            "auto.register.schemas": "false",
            "use.latest.version": True,
            "normalize.schemas": "TRUE",
            "use.schema.id": "-1",
            "value.subject.name.strategy": "io.confluent.kafka.serializers.subject.RecordNameStrategy",
            "value.schema.id.serializer": "io.confluent.kafka.serializers.schema.id.HeaderSchemaIdSerializer",
        }
    )
    assert client.urls == ("http://a:1",)
    assert serializer == SerializerSettings(
        auto_register=False,
        use_latest_version=True,
        normalize=True,
        strategy=SubjectNameStrategy.RECORD_NAME,
        id_place=IdPlace.HEADER,
    )


def test_keys_and_values_are_told_apart() -> None:
    properties = {"key.subject.name.strategy": "RECORD_NAME", "value.subject.name.strategy": "TOPIC_RECORD_NAME"}
    assert parse(properties, is_key=True)[1].strategy is SubjectNameStrategy.RECORD_NAME
    assert parse(properties)[1].strategy is SubjectNameStrategy.TOPIC_RECORD_NAME


def test_nothing_said_means_confluents_defaults() -> None:
    assert parse({})[1] == SerializerSettings()
    assert SerializerSettings().auto_register


@pytest.mark.parametrize(
    ("key", "value", "complaint"),
    [
        ("auto.register.schemas", "yes", "must be true or false, not 'yes'"),
        ("use.schema.id", "x", "must be a schema id, not 'x'"),
        ("use.schema.id", str(1 << 32), "must be a schema id"),
        (
            "value.subject.name.strategy",
            "Mine",
            "value.subject.name.strategy: there is no subject name strategy 'Mine'",
        ),
        ("schema.id.serializer", "Mine", "PrefixSchemaIdSerializer or HeaderSchemaIdSerializer, not 'Mine'"),
        ("auto.register", "true", "unknown setting auto.register"),
    ],
)
def test_what_cannot_be_is_refused_with_key_and_value(key: str, value: str, complaint: str) -> None:
    with pytest.raises(InvalidSettings) as refusal:
        parse({key: value})
    assert complaint in str(refusal.value)
