from pathlib import Path

import pytest

from core_broker.service.settings import SettingsError
from streams.settings import StreamsSettings


def test_a_properties_file_of_ksqldb_is_understood() -> None:
    settings = StreamsSettings.parse(
        {
            "listeners": "http://0.0.0.0:8088",
            "bootstrap.servers": "one:9092, two:9092",
            "security.protocol": "SASL_SSL",
            "sasl.mechanism": "PLAIN",
            "sasl.jaas.config": 'x.PlainLoginModule required username="u" password="p";',
            "client.ssl.ca.location": "ca.pem",
            "ksql.logging.processing.topic.auto.create": "true",
            "ksql.schema.registry.url": "http://localhost:8081",
            "ksql.streams.num.stream.threads": "4",
            "ksql.streams.auto.offset.reset": "earliest",
            "ksql.streams.state.dir": "state",
            "ksql.functions.collect_list.limit": "10",
        }
    )
    assert settings.cluster() == {
        "bootstrap.servers": "one:9092,two:9092",
        "security.protocol": "SASL_SSL",
        "sasl.mechanisms": "PLAIN",
        "sasl.username": "u",
        "sasl.password": "p",
        "ssl.ca.location": "ca.pem",
    }
    assert settings.registry_url == "http://localhost:8081"
    assert settings.registry_properties == {"schema.registry.url": "http://localhost:8081"}
    assert settings.checkpoints == str(Path("state/checkpoints").absolute())
    defaults = settings.defaults()
    assert defaults["auto.offset.reset"] == "earliest"
    assert defaults["ksql.functions.collect_list.limit"] == "10"
    assert "ksql.persistence.default.format.key" in defaults
    assert "p" not in repr(settings).split("=")


@pytest.mark.parametrize(
    "key,value,reason",
    [
        ("ksql.queries.file", "x.sql", "caudal sql -f"),
        ("ksql.persistence.default.format.value", "XML", "one of AVRO"),
        ("ksql.service.id", "a b", "letters, digits"),
        ("spark.driver.memory", "much", "number followed by"),
        ("ksql.max.push.query", "1", "did you mean ksql.max.push.queries"),
        ("client.sasl.jaas.config", "Krb5LoginModule required;", "PLAIN and SCRAM"),
        ("ssl.keystore.location", "x.jks", "ssl.certificate.location"),
    ],
)
def test_what_cannot_work_is_refused(key: str, value: str, reason: str) -> None:
    with pytest.raises(SettingsError, match=reason):
        StreamsSettings.parse({key: value})


def test_every_setting_is_explained() -> None:
    assert [key for key in StreamsSettings.DEFINITIONS if not StreamsSettings.help_of(key)] == []


def test_functions_of_users_need_a_folder(tmp_path: Path) -> None:
    assert StreamsSettings(ksql_extension_dir=str(tmp_path / "none")).extensions == ""
    assert StreamsSettings(ksql_extension_dir=str(tmp_path)).extensions == str(tmp_path)
