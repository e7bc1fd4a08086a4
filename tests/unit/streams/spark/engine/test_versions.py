import pytest

from streams.settings import SparkSettings
from streams.spark.engine.versions import differing_keys, setting_digests

RUNNING = {"spark.driver.memory": "2g", "spark.executor.cores": "4", "spark.caudal.data.dir": "/engine"}


@pytest.mark.parametrize(
    ("wanted", "others"),
    [
        ({}, []),
        ({"spark.caudal.data.dir": "/engine"}, []),
        ({"spark.driver.memory": "2g", "spark.master": "local[*]"}, []),
        ({"spark.caudal.idle.timeout.ms": "1000"}, []),
        ({"spark.driver.memory": "3g", "spark.master": "yarn"}, ["spark.driver.memory", "spark.master"]),
        ({"spark.executor.cores": "5"}, ["spark.executor.cores"]),
        ({"spark.eventLog.enabled": "true"}, ["spark.eventLog.enabled"]),
        ({"spark.caudal.warehouse.dir": "/elsewhere"}, ["spark.caudal.warehouse.dir"]),
        ({"spark.caudal.warehouse.dir": "/engine/warehouse"}, []),
    ],
)
def test_only_what_was_given_can_differ(wanted: dict[str, str], others: list[str]) -> None:
    assert differing_keys(SparkSettings.parse(wanted), setting_digests(SparkSettings.parse(RUNNING))) == others


def test_no_password_is_revealed() -> None:
    assert "secret" not in str(setting_digests(SparkSettings.parse({"spark.ssl.keyPassword": "secret"})))
