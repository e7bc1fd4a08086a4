from pathlib import Path

import pytest

from deploy.launcher.state import PlatformState, ServiceState, SparkState
from deploy.quickstart.platform import addresses_of, running
from deploy.quickstart.tour import StepFailed


def _service(endpoint: str) -> ServiceState:
    return ServiceState(state="ready", port=1, endpoint=endpoint, metrics="", log=f"/logs/{endpoint}.log")


def _state(*names: str, **elsewhere: str) -> PlatformState:
    return PlatformState(
        pid=1,
        started_ms=0,
        data="/data",
        state="running",
        services={name: _service(f"http://{name}") for name in names},
        spark=SparkState(data_dir="/data/spark", connect_port=15002),
        elsewhere=elsewhere,
    )


def test_places_are_those_of_the_platform() -> None:
    addresses = addresses_of(_state("broker", "registry", "rest-proxy", "connect", "streams"))

    assert (addresses.bootstrap, addresses.proxy) == ("http://broker", "http://rest-proxy")
    assert addresses.shop == Path("/data/shop.db")
    assert addresses.spark_data == Path("/data/spark")
    assert addresses.logs["connect"] == Path("/logs/http://connect.log")


def test_what_runs_elsewhere_is_used_there() -> None:
    addresses = addresses_of(_state("registry", "rest-proxy", "connect", "streams", broker="kafka:9092"))

    assert addresses.bootstrap == "kafka:9092"


def test_a_platform_without_a_part_that_the_tour_needs_is_refused() -> None:
    with pytest.raises(StepFailed, match="runs without rest-proxy, connect, streams"):
        addresses_of(_state("broker", "registry"))


def test_nothing_runs_in_a_folder_that_is_not_there(tmp_path: Path) -> None:
    assert running(tmp_path / "nowhere") is None
