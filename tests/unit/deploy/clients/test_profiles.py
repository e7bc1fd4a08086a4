from pathlib import Path

import pytest

from deploy.clients.profiles import (
    Profile,
    ProfileError,
    Profiles,
    changing_profiles,
    check_name,
    profiles_file,
    read_profiles,
)


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    return {"CAUDAL_CONFIG_HOME": str(tmp_path / "config")}


def test_profiles_are_read_as_they_were_written(environment: dict[str, str]) -> None:
    new = Profile(client_config="/client.properties", registry="https://registry:8081")
    with changing_profiles(environment) as changes:
        changes.profiles["shop"] = new
        changes.current = "shop"
    assert read_profiles(environment) == Profiles(current="shop", profiles={"shop": new})


def test_only_the_owner_can_read_the_file_and_its_folder(environment: dict[str, str]) -> None:
    with changing_profiles(environment) as changes:
        changes.profiles["shop"] = Profile(bootstrap="b:9092")
    file = profiles_file(environment)
    assert file.stat().st_mode & 0o777 == 0o600
    assert file.parent.stat().st_mode & 0o777 == 0o700
    assert [path.name for path in file.parent.iterdir()] == [file.name]


def test_a_file_that_others_can_change_is_not_used(environment: dict[str, str]) -> None:
    with changing_profiles(environment) as changes:
        changes.current = None
    profiles_file(environment).chmod(0o622)
    with pytest.raises(ProfileError, match="can be changed by other users"):
        read_profiles(environment)


def test_a_file_with_something_else_is_refused_with_its_name(environment: dict[str, str]) -> None:
    file = profiles_file(environment)
    file.parent.mkdir()
    for text in ("nonsense", '{"profiles": {"x": {"colour": "blue"}}}'):
        file.write_text(text)
        with pytest.raises(ProfileError, match=f"{file} is not a file of profiles"):
            read_profiles(environment)


def test_nothing_changes_when_the_change_fails(environment: dict[str, str]) -> None:
    with pytest.raises(ValueError, match="stop"), changing_profiles(environment) as changes:
        changes.profiles["shop"] = Profile(bootstrap="b:9092")
        raise ValueError("stop")
    assert read_profiles(environment) == Profiles()


def test_the_folder_is_the_usual_one_of_the_system() -> None:
    assert profiles_file({"HOME": "/home/a"}) == Path("/home/a/.config/caudal/profiles.json")
    assert profiles_file({"HOME": "/home/a", "XDG_CONFIG_HOME": "/x"}) == Path("/x/caudal/profiles.json")
    assert profiles_file({"HOME": "/home/a", "XDG_CONFIG_HOME": "x"}) == Path("/home/a/.config/caudal/profiles.json")


def test_an_unknown_name_is_told_with_those_that_there_are() -> None:
    with pytest.raises(ProfileError, match="no profile 'prod'; there are: shop, stage"):
        Profiles(profiles={"stage": Profile(), "shop": Profile()}).named("prod")


@pytest.mark.parametrize("name", ["", "-x", "a b", "a/b", "x" * 65])
def test_a_name_that_a_shell_would_trip_over_is_refused(name: str) -> None:
    with pytest.raises(ProfileError, match="is not a name"):
        check_name(name)
