from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core_broker.service.properties import from_assignments, from_environment, gather, parse_properties
from core_broker.service.settings import SettingsError


def test_properties_file_is_read_as_java_reads_it() -> None:
    text = r"""
# a comment
! another
node.id=1
  log.dirs : /a,\
      /b
listeners PLAINTEXT://:9092
empty=
url=http\://host
greeting=ol\u00e1\tmundo
a\ key=x = y
"""
    assert parse_properties(text) == {
        "node.id": "1",
        "log.dirs": "/a,/b",
        "listeners": "PLAINTEXT://:9092",
        "empty": "",
        "url": "http://host",
        "greeting": "olá\tmundo",
        "a key": "x = y",
    }


@given(
    st.dictionaries(
        st.from_regex(r"[a-z]+(\.[a-z]+){0,3}", fullmatch=True), st.from_regex(r"[a-z0-9:/,]*", fullmatch=True)
    )
)
def test_plain_keys_and_values_come_back_as_written(values: dict[str, str]) -> None:
    assert parse_properties("\n".join(f"{key}={value}" for key, value in values.items())) == values


def test_environment_maps_underscores_as_kafkas_images_do() -> None:
    environment = {"KAFKA_LOG_SEGMENT_BYTES": "1", "KAFKA_A__B": "2", "KAFKA_A___B": "3", "PATH": "/bin"}
    assert from_environment(environment, "KAFKA_") == {"log.segment.bytes": "1", "a-b": "2", "a_b": "3"}


def test_environment_of_scripts_and_kubernetes_is_no_setting() -> None:
    names = [
        "KAFKA_HOME",
        "KAFKA_HEAP_OPTS",
        "KAFKA_SERVICE_HOST",
        "KAFKA_PORT",
        "KAFKA_PORT_9092_TCP_ADDR",
        "KAFKA_JMX_OPTS",
    ]
    assert from_environment(dict.fromkeys(names, "x"), "KAFKA_") == {}


def test_settings_of_the_rest_proxy_are_none_of_the_broker() -> None:
    environment = {"KAFKA_REST_LISTENERS": "http://:1"}
    assert from_environment(environment, "KAFKA_") == {}
    assert from_environment(environment, "KAFKA_REST_") == {"listeners": "http://:1"}


def test_settings_of_connect_that_begin_with_rest_are_not_lost() -> None:
    environment = {"CONNECT_REST_ADVERTISED_HOST_NAME": "connect"}
    assert from_environment(environment, "CONNECT_") == {"rest.advertised.host.name": "connect"}


def test_command_line_wins_over_environment_over_file(tmp_path: Path) -> None:
    file = tmp_path / "broker.properties"
    file.write_text("a=file\nb=file\nc=file\n")
    values = gather(file=file, environment={"KAFKA_B": "env", "KAFKA_C": "env"}, assignments=["c=set"])
    assert values == {"a": "file", "b": "env", "c": "set"}


@pytest.mark.parametrize("assignment", ["novalue", "=x"])
def test_assignment_without_key_or_equals_is_refused(assignment: str) -> None:
    with pytest.raises(SettingsError, match="must look like key=value"):
        from_assignments([assignment])


def test_assignment_keeps_further_equals_signs() -> None:
    assert from_assignments(["a=b=c"]) == {"a": "b=c"}


def test_missing_file_is_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="cannot be read"):
        gather(file=tmp_path / "nowhere.properties")
