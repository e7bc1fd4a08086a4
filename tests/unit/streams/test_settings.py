from pathlib import Path

import pytest

from core_broker.service.settings import SettingsError
from streams.settings import SparkSettings


def test_defaults_are_an_embedded_spark_in_a_folder_of_its_own() -> None:
    settings = SparkSettings()
    assert settings.data_dir == Path.cwd() / "caudal-spark"
    assert settings.warehouse == str(Path.cwd() / "caudal-spark" / "warehouse")
    assert settings.is_local
    assert settings.connect_port == 15002
    assert settings.of_spark() == {"spark.master": "local[*]", "spark.driver.memory": "1g"}


def test_every_key_has_help() -> None:
    assert [key for key in SparkSettings.DEFINITIONS if not SparkSettings.help_of(key)] == []


def test_what_is_sparks_own_is_given_to_spark_as_it_is() -> None:
    settings = SparkSettings.parse({"spark.executor.memory": "2g", "spark.master": "spark://host:7077"})
    assert settings.of_spark() == {
        "spark.executor.memory": "2g",
        "spark.master": "spark://host:7077",
        "spark.driver.memory": "1g",
    }
    assert not settings.is_local


@pytest.mark.parametrize(
    ("key", "value", "reason"),
    [
        ("spark.caudal.data.folder", "x", "unknown setting; known are spark.caudal.connect.host, "),
        ("spark.caudal.data.dir", "", "must be not empty"),
        ("spark.caudal.connect.port", "70000", "must be between -1 and 65535"),
        ("spark.caudal.connect.port", "many", "must be a whole number"),
        ("spark.caudal.idle.timeout.ms", "1", "must be at least 1000"),
        ("spark.driver.memory", "much", "must be a number followed by k, m, g or t, such as 1g"),
        ("spark.driver.memory", "1024", "must be a number followed by k, m, g or t, such as 1g"),
        ("spark.driver.memory", "", "must be a number followed by k, m, g or t, such as 1g"),
        ("spark.remote", "sc://host", "set spark.master"),
        ("spark.sql.warehouse.dir", "/x", "use spark.caudal.warehouse.dir"),
        ("spark.connect.grpc.binding.port", "1", "use spark.caudal.connect.port"),
        ("bootstrap.servers", "x", "unknown setting"),
    ],
)
def test_what_cannot_work_is_refused_with_what_is_allowed(key: str, value: str, reason: str) -> None:
    with pytest.raises(SettingsError) as refusal:
        SparkSettings.parse({key: value})
    (problem,) = refusal.value.problems
    assert problem.key == key
    assert reason in problem.reason


def test_the_refusal_of_an_unknown_key_of_ours_names_all_there_are() -> None:
    ours = [key for key in SparkSettings.DEFINITIONS if key.startswith("spark.caudal.")]
    output = SparkSettings.REFUSED["spark.caudal.*"]
    assert [key for key in ours if key not in output] == []


def test_the_file_may_be_another_services_and_the_last_source_wins(tmp_path: Path) -> None:
    file = tmp_path / "connect.properties"
    file.write_text("bootstrap.servers=kafka:9092\nspark.master=local[1]\nspark.driver.memory=1g\nspark.a=file\n")
    environment = {"CAUDAL_SPARK_MASTER": "local[2]", "CAUDAL_SPARK_DRIVER_MEMORY": "2g", "CAUDAL_BOOTSTRAP": "x"}
    settings = SparkSettings.read(file=file, environment=environment, assignments=["spark.master=local[3]"])
    assert settings.of_spark() == {"spark.master": "local[3]", "spark.driver.memory": "2g", "spark.a": "file"}


def test_beside_a_connect_worker_its_spark_is_meant_unless_another_is_named() -> None:
    environment = {"CONNECT_SPARK_MASTER": "local[4]", "CONNECT_SPARK_DRIVER_MEMORY": "4g", "CONNECT_GROUP_ID": "x"}
    named = {"CAUDAL_SPARK_MASTER": "local[2]"}

    beside = SparkSettings.read(file=None, environment=environment)
    another = SparkSettings.read(file=None, environment=environment | named)

    assert beside.of_spark() == {"spark.master": "local[4]", "spark.driver.memory": "4g"}
    assert another.of_spark() == {"spark.master": "local[2]", "spark.driver.memory": "4g"}


def test_an_assignment_of_another_services_setting_is_a_mistake() -> None:
    with pytest.raises(SettingsError, match="bootstrap.servers"):
        SparkSettings.read(file=None, environment={}, assignments=["bootstrap.servers=kafka:9092"])


def test_those_of_another_services_settings_that_are_sparks_can_be_taken() -> None:
    settings = SparkSettings.among({"bootstrap.servers": "x", "spark.master": "local[7]"})
    assert settings.spark_master == "local[7]"


@pytest.mark.parametrize(
    ("given", "warehouse"),
    [
        ("/tables", "/tables"),
        ("s3a://bucket/tables", "s3a://bucket/tables"),
        ("file:/tables", "file:/tables"),
        ("tables", str(Path.cwd() / "tables")),
    ],
)
def test_the_warehouse_may_be_on_any_file_system(given: str, warehouse: str) -> None:
    assert SparkSettings.parse({"spark.caudal.warehouse.dir": given}).warehouse == warehouse


def test_settings_as_text_are_read_as_the_same_settings_in_any_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = SparkSettings.parse(
        {"spark.caudal.data.dir": "here", "spark.caudal.connect.port": "-1", "spark.ssl.keyPassword": "pass=word"}
    )
    text, warehouse = settings.as_text(), settings.warehouse
    monkeypatch.chdir(tmp_path)
    again = SparkSettings.parse(text)
    assert again.connect_port is None
    assert again.warehouse == warehouse
    assert again.of_spark() == settings.of_spark()


def test_passwords_among_the_properties_are_not_shown() -> None:
    assert "secret" not in repr(SparkSettings.parse({"spark.ssl.keyPassword": "secret"}))
