import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from deploy.clients.profiles import Profile, ProfileError, changing_profiles
from deploy.commands.target import Target, choose_target
from deploy.launcher.lock import PlatformLock
from deploy.launcher.state import PlatformState, ServiceState, SparkState, write

CLIENT_FILE = Path("/platform/client.properties")


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    return {"CAUDAL_CONFIG_HOME": str(tmp_path / "config"), "CAUDAL_DATA": str(tmp_path / "data")}


@pytest.fixture
def platform(environment: dict[str, str]) -> Iterator[PlatformState]:
    """A platform whose launcher this process is."""
    data = Path(environment["CAUDAL_DATA"])
    data.mkdir()

    def service(endpoint: str) -> ServiceState:
        return ServiceState(state="ready", port=1, endpoint=endpoint, metrics="", log="")

    state = PlatformState(
        pid=os.getpid(),
        started_ms=0,
        data=str(data),
        state="running",
        services={"broker": service("localhost:7092"), "connect": service("https://localhost:7083")},
        spark=SparkState(data_dir=str(data / "spark"), connect_port=15002),
        elsewhere={"registry": "https://registry:8081"},
        client_config=str(CLIENT_FILE),
    )
    lock = PlatformLock.try_acquire(data)
    assert lock is not None
    write(state)
    yield state
    lock.release()


def add(environment: dict[str, str], name: str, profile: Profile, *, use: bool = False) -> None:
    with changing_profiles(environment) as changes:
        changes.profiles[name] = profile
        changes.current = name if use else changes.current


def test_the_platform_of_the_data_folder_is_found(environment: dict[str, str], platform: PlatformState) -> None:
    assert choose_target(None, environment) == Target(
        bootstrap="localhost:7092",
        client_config=CLIENT_FILE,
        registry="https://registry:8081",
        connect="https://localhost:7083",
        spark=Path(platform.data) / "spark",
        platform=platform.data,
    )


def test_a_profile_in_use_wins_over_the_platform(environment: dict[str, str], platform: PlatformState) -> None:
    add(environment, "shop", Profile(bootstrap="shop:9092"), use=True)
    assert choose_target(None, environment) == Target(bootstrap="shop:9092", profile="shop")


def test_a_profile_that_is_named_wins_over_the_one_in_use(environment: dict[str, str]) -> None:
    add(environment, "shop", Profile(bootstrap="shop:9092"), use=True)
    add(environment, "other", Profile(connect="http://other:8083"))
    assert choose_target("other", environment) == Target(connect="http://other:8083", profile="other")
    with pytest.raises(ProfileError, match="there are: other, shop"):
        choose_target("third", environment)


def test_without_profile_and_platform_there_is_nothing(environment: dict[str, str]) -> None:
    assert choose_target(None, environment) == Target()


def test_the_password_of_a_platform_goes_to_no_other_address(
    environment: dict[str, str], platform: PlatformState
) -> None:
    target = choose_target(None, environment)
    assert target.client_file(None, own=target.bootstrap) == CLIENT_FILE
    assert target.client_file("localhost:7092", own=target.bootstrap) == CLIENT_FILE
    assert target.client_file("evil:9092", own=target.bootstrap) is None


def test_the_client_file_of_a_profile_is_also_for_an_address_that_is_given() -> None:
    target = Target(bootstrap="one:9092", client_config=CLIENT_FILE, profile="shop")
    assert target.client_file("two:9092", own=target.bootstrap) == CLIENT_FILE
