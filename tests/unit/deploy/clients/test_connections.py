from pathlib import Path

import pytest

from core_broker.service.settings import SettingsError
from deploy.clients.connections import client_settings, principal_of

FILE = """
bootstrap.servers=kafka:9093
security.protocol=SASL_SSL
sasl.mechanism=SCRAM-SHA-512
sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required \\
  username="alice" password="wonderland";
ssl.truststore.type=PEM
ssl.truststore.location=/ca.pem
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "client.properties"
    path.write_text(FILE)
    return path


def test_a_file_of_kafkas_tools_is_understood(file: Path) -> None:
    settings = client_settings(None, [], file, timeout=1)
    assert settings.bootstrap_servers == "kafka:9093"
    assert settings.properties == {
        "log_level": "0",
        "security.protocol": "SASL_SSL",
        "sasl.mechanisms": "SCRAM-SHA-512",
        "sasl.username": "alice",
        "sasl.password": "wonderland",
        "ssl.ca.location": "/ca.pem",
    }
    assert principal_of(settings) == "User:alice"


def test_what_is_on_the_command_line_wins(file: Path) -> None:
    settings = client_settings("other:9092", ["sasl.mechanism=PLAIN"], file, timeout=1)
    assert settings.bootstrap_servers == "other:9092"
    assert settings.properties["sasl.mechanisms"] == "PLAIN"


def test_the_principal_is_known_where_the_client_chooses_it() -> None:
    assert principal_of(client_settings(None, timeout=1)) == "User:ANONYMOUS"
    assert principal_of(client_settings(None, ["security.protocol=SSL"], timeout=1)) is None


def test_secrets_are_not_repeated_when_a_property_is_refused(tmp_path: Path) -> None:
    for assignment in ("sasl.jaas.config=x.PlainLoginModule required username=hush;", "ssl.keystore.password=hush"):
        with pytest.raises(SettingsError) as raised:
            client_settings(None, [assignment], timeout=1)
        assert "hush" not in str(raised.value.problems)
    with pytest.raises(SettingsError, match="--client-config"):
        client_settings(None, [], tmp_path / "missing", timeout=1)
    with pytest.raises(SettingsError, match="--property"):
        client_settings(None, ["nonsense"], timeout=1)
