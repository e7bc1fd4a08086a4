"""Placeholders are filled in from files, directories and the environment, and from nowhere else."""

from collections.abc import Collection, Mapping
from importlib.metadata import EntryPoint, EntryPoints
from pathlib import Path

import pytest
from typing_extensions import override

from connect.api.config_provider import ConfigProvider
from connect.api.errors import ConfigError
from connect.runtime.configuration import config_providers
from connect.runtime.configuration.config_providers import ConfigProviders, conceal
from connect.settings import ConnectSettings


@pytest.fixture
def secrets(tmp_path: Path) -> Path:
    (tmp_path / "db.properties").write_text("user=anna\npassword = s3:cr}t\nurl:jdbc:x\n")
    (tmp_path / "token").write_text("abc\n")
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "other").write_text("deep")
    return tmp_path


def providers(**settings: str) -> ConfigProviders:
    return ConfigProviders(ConnectSettings.parse({key.replace("_", "."): value for key, value in settings.items()}))


@pytest.mark.parametrize(
    ("text", "filled"),
    [
        ("plain", "plain"),
        ("${file:{dir}/db.properties:user}", "anna"),
        ("${file:{dir}/db.properties:password}", "s3:cr}t"),
        ("a-${file:{dir}/db.properties:user}-b-${env:CAUDAL_TEST}", "a-anna-b-from the environment"),
        ("${dir:{dir}:token}", "abc\n"),
        ("${env:CAUDAL_TEST}", "from the environment"),
        ("${env::CAUDAL_TEST}", "from the environment"),
        ("${topic}", "${topic}"),
        ("${unknown:a:b}", "${unknown:a:b}"),
        ("${timestamp:yyyy}/${env:CAUDAL_TEST}", "${timestamp:yyyy}/from the environment"),
        ("${", "${"),
        ("${env:CAUDAL_TEST", "${env:CAUDAL_TEST"),
        ("$${env:CAUDAL_TEST}", "$from the environment"),
        ("", ""),
    ],
)
def test_placeholders_are_filled_in(secrets: Path, monkeypatch: pytest.MonkeyPatch, text: str, filled: str) -> None:
    monkeypatch.setenv("CAUDAL_TEST", "from the environment")
    resolved = providers().resolve({"key": text.replace("{dir}", str(secrets))})
    assert resolved == {"key": filled}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("${file:{dir}/db.properties:nothing}", "the provider file has no such value"),
        ("${file:{dir}/nothing:user}", "cannot be read: No such file or directory"),
        ("${file:user}", "the path is missing"),
        ("${dir:{dir}:nothing}", "the provider dir has no such value"),
        ("${dir:{dir}/deep:../token}", "the provider dir has no such value"),
        ("${dir:{dir}:deep}", "the provider dir has no such value"),
        ("${dir:{dir}/token:x}", "is not a directory"),
        ("${env:CAUDAL_NOT_SET}", "the provider env has no such value"),
        ("${env:path:CAUDAL_TEST}", "have no path, but path was given"),
    ],
)
def test_what_cannot_be_filled_in_is_told_with_its_key(secrets: Path, text: str, message: str) -> None:
    text = text.replace("{dir}", str(secrets))
    with pytest.raises(ConfigError) as raised:
        providers().resolve({"connection.password": text})
    assert str(raised.value).startswith(f"Invalid value {text} for configuration connection.password: ")
    assert message in str(raised.value)


def test_values_that_were_filled_in_are_not_filled_in_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CAUDAL_TEST", "${env:HOME}")
    assert providers().resolve({"key": "${env:CAUDAL_TEST}"}) == {"key": "${env:HOME}"}


def test_a_very_long_text_of_braces_is_read_quickly() -> None:
    text = "${" * 500_000
    assert providers().resolve({"key": text}) == {"key": text}


def test_files_outside_of_allowed_paths_are_refused(secrets: Path) -> None:
    allowed = ConnectSettings.parse({"config.providers.file.param.allowed.paths": str(secrets / "deep")})
    with pytest.raises(ConfigError, match=r"is not below allowed\.paths"):
        ConfigProviders(allowed).resolve({"key": f"${{file:{secrets}/deep/../db.properties:user}}"})


def test_a_link_does_not_lead_out_of_allowed_paths(secrets: Path) -> None:
    (secrets / "deep" / "link").symlink_to(secrets / "db.properties")
    allowed = ConnectSettings.parse({"config.providers.file.param.allowed.paths": str(secrets / "deep")})
    with pytest.raises(ConfigError, match=r"is not below allowed\.paths"):
        ConfigProviders(allowed).resolve({"key": f"${{file:{secrets}/deep/link:user}}"})


def test_files_below_allowed_paths_are_read(secrets: Path) -> None:
    allowed = ConnectSettings.parse({"config.providers.dir.param.allowed.paths": f"/usr, {secrets}"})
    assert ConfigProviders(allowed).resolve({"key": f"${{dir:{secrets}/deep:other}}"}) == {"key": "deep"}


def test_variables_outside_of_the_allowlist_do_not_exist(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CAUDAL_TEST", "x")
    monkeypatch.setenv("OTHER", "y")
    allowed = ConfigProviders(ConnectSettings.parse({"config.providers.env.param.allowlist.pattern": "CAUDAL_.*"}))
    assert allowed.resolve({"key": "${env:CAUDAL_TEST}"}) == {"key": "x"}
    with pytest.raises(ConfigError):
        allowed.resolve({"key": "${env:OTHER}"})


def test_a_file_that_is_too_long_is_refused(tmp_path: Path) -> None:
    (tmp_path / "long").write_bytes(b"a" * (1024 * 1024 + 1))
    with pytest.raises(ConfigError, match="longer than"):
        providers().resolve({"key": f"${{dir:{tmp_path}:long}}"})


def test_providers_have_the_names_and_classes_of_the_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CAUDAL_TEST", "x")
    named = ConnectSettings.parse(
        {
            "config.providers": "mine",
            "config.providers.mine.class": "org.apache.kafka.common.config.provider.EnvVarConfigProvider",
        }
    )
    assert ConfigProviders(named).resolve({"a": "${mine:CAUDAL_TEST}", "b": "${env:CAUDAL_TEST}"}) == {
        "a": "x",
        "b": "${env:CAUDAL_TEST}",
    }


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (
            {"config.providers": "vault"},
            "config.providers.vault: there is no provider vault; available are dir, env, file",
        ),
        (
            {"config.providers": "x", "config.providers.x.class": "com.Nothing"},
            "config.providers.x: there is no provider com.Nothing",
        ),
        ({"config.providers.env.param.allowlist.pattern": "("}, "not a regular expression"),
        ({"config.providers.file.param.allowed.paths": "relative"}, "must be absolute paths that exist"),
    ],
)
def test_wrong_settings_are_told(settings: dict[str, str], message: str) -> None:
    with pytest.raises(ConfigError) as raised:
        ConfigProviders(ConnectSettings.parse(settings))
    assert message in str(raised.value)


class UpperProvider(ConfigProvider):
    aliases = ("com.example.UpperConfigProvider",)

    @override
    def get(self, path: str, keys: Collection[str]) -> Mapping[str, str]:
        return {key: key.upper() for key in keys}


@pytest.mark.parametrize("settings", [{}, {"config.providers.upper.class": "com.example.UpperConfigProvider"}])
def test_providers_of_installed_packages_are_found(monkeypatch: pytest.MonkeyPatch, settings: dict[str, str]) -> None:
    point = EntryPoint("upper", f"{__name__}:UpperProvider", "caudal.config_providers")
    monkeypatch.setattr(config_providers, "entry_points", lambda **_: EntryPoints([point]))
    found = ConfigProviders(ConnectSettings.parse({"config.providers": "upper", **settings}))
    assert found.resolve({"key": "${upper:abc}"}) == {"key": "ABC"}


def test_what_placeholders_stand_for_can_be_concealed(secrets: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CAUDAL_TEST", "anna-maria")
    user, name = f"${{file:{secrets}/db.properties:user}}", "${env:CAUDAL_TEST}"
    token, lost = f"${{dir:{secrets}:token}}", "${env:CAUDAL_LOST}"
    found = providers().secrets({"a": f"x {user} y {name}", "b": token, "c": lost, "d": "${topic}", "e": "plain"})
    assert found == {"anna": user, "anna-maria": name, "abc\n": token}
    text = "no login for anna-maria (anna) with abc at plain"
    assert conceal(text, found) == f"no login for {name} ({user}) with {token} at plain"


def test_what_is_very_short_is_not_concealed() -> None:
    assert conceal("1 of 11 failed", {"1": "${env:ONE}"}) == "1 of 11 failed"
