from pathlib import Path

import pytest

from streams.settings import SparkSettings
from streams.spark.engine.configuration import (
    engine_environment,
    logging_properties,
    python_path,
    spark_configuration,
    spark_master,
)
from streams.spark.engine.folder import EngineFolder

FOLDER = EngineFolder(Path("/engine"))


def configuration(more: dict[str, str] | None = None, *, connect_port: int | None = 15002) -> dict[str, str]:
    return spark_configuration(SparkSettings.parse(more or {}), FOLDER, connect_port=connect_port, cores=2)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("local", "local[1,4]"),
        ("local[*]", "local[8,4]"),
        ("local[3]", "local[3,4]"),
        ("local[3,1]", "local[3,1]"),
        ("local[*,2]", "local[*,2]"),
        ("local-cluster[2,1,1024]", "local-cluster[2,1,1024]"),
        ("spark://host:7077", "spark://host:7077"),
        ("k8s://https://host", "k8s://https://host"),
    ],
)
def test_tasks_are_tried_again_on_one_machine_as_on_a_cluster(given: str, expected: str) -> None:
    assert spark_master(given, cores=8) == expected


def test_sessions_share_a_catalog_in_the_folder_and_see_each_others_rows() -> None:
    found = configuration()
    assert found["spark.sql.catalogImplementation"] == "hive"
    assert "/engine/metastore_db" in found["spark.hadoop.javax.jdo.option.ConnectionURL"]
    assert found["spark.sql.metadataCacheTTLSeconds"] == "1"
    assert found["spark.sql.session.timeZone"] == "UTC"


def test_what_the_operator_says_wins() -> None:
    found = configuration({"spark.ui.enabled": "true", "spark.sql.session.timeZone": "Europe/Madrid"})
    assert found["spark.ui.enabled"] == "true"
    assert found["spark.sql.session.timeZone"] == "Europe/Madrid"


def test_options_of_java_and_plugins_of_the_operator_stand_beside_ours() -> None:
    found = configuration({"spark.driver.extraJavaOptions": "-Dx=y", "spark.plugins": "org.example.Plugin"})
    assert found["spark.driver.extraJavaOptions"].startswith("-XX:+ExitOnOutOfMemoryError ")
    assert found["spark.driver.extraJavaOptions"].endswith(" -Dx=y")
    assert found["spark.plugins"] == "org.example.Plugin,org.apache.spark.sql.connect.SparkConnectPlugin"


def test_without_an_endpoint_for_notebooks_there_is_no_plugin() -> None:
    assert not [key for key in configuration(connect_port=None) if key.startswith(("spark.plugins", "spark.connect"))]


def test_only_on_one_machine_everything_stays_on_the_loopback() -> None:
    assert configuration()["spark.driver.host"] == "127.0.0.1"
    assert "spark.driver.host" not in configuration({"spark.master": "spark://host:7077"})
    inherited = {"PATH": "/bin"}
    on_cluster = engine_environment(SparkSettings(spark_master="yarn"), inherited, python="/ours/python")
    assert "SPARK_LOCAL_IP" not in on_cluster


@pytest.mark.parametrize(
    ("given", "inherited", "python"),
    [
        ({}, {"PYSPARK_PYTHON": "/other/python"}, "/ours/python"),
        ({"spark.master": "yarn"}, {"PYSPARK_PYTHON": "/other/python"}, "/other/python"),
        ({"spark.master": "yarn"}, {}, "/ours/python"),
        ({"spark.master": "yarn", "spark.pyspark.python": "/there/python"}, {"PYSPARK_PYTHON": "/x"}, "/there/python"),
    ],
)
def test_workers_run_the_engines_python_unless_a_cluster_has_another(
    given: dict[str, str], inherited: dict[str, str], python: str
) -> None:
    found = engine_environment(SparkSettings.parse(given), inherited, python="/ours/python")
    assert found["PYSPARK_PYTHON"] == python


def test_what_would_lead_spark_elsewhere_is_not_inherited() -> None:
    inherited = {"SPARK_REMOTE": "sc://x", "PYSPARK_GATEWAY_PORT": "1", "PYSPARK_SUBMIT_ARGS": "x", "HOME": "/home"}
    found = engine_environment(SparkSettings(), inherited, python="python")
    assert found.keys() & inherited.keys() == {"HOME"}


def test_workers_find_data_sources_our_packages_and_the_users_code_from_any_folder() -> None:
    found = python_path(Path("/site"), "lib:/abs:/site", directory=Path("/user"))
    assert found == "/site/streams/spark/discovery:/site:/user/lib:/abs"


def test_the_log_is_bounded_and_in_the_folder() -> None:
    text = logging_properties(FOLDER)
    assert "appender.file.fileName = /engine/spark.log" in text
    assert "SizeBasedTriggeringPolicy" in text
    assert "Console" not in text
