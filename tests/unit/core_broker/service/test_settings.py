import pytest
from typing_extensions import override

from core_broker.service.settings import (
    BOOLEAN,
    DOUBLE,
    INT,
    LIST,
    LONG,
    PASSWORD,
    STRING,
    Problem,
    Properties,
    Settings,
    SettingsError,
    at_least,
    between,
    gathered,
    one_of,
    optional,
    setting,
    some_of,
)


class Sample(Settings):
    IGNORED = {"num.threads": "there is one", "vendor.*": "not ours"}
    REFUSED = {"zoo.*": "there is none"}

    size_bytes: int = setting(INT, default=10, check=at_least(2), aliases=("size",))
    """Size of
    the thing."""
    ratio: float = setting(DOUBLE, default=0.5, check=between(0, 1))
    """Share."""
    is_on: bool = setting(BOOLEAN, default=False)
    """Switch."""
    mode: str = setting(STRING, default="slow", check=one_of("slow", "fast"))
    """Speed."""
    hosts: tuple[str, ...] = setting(LIST, default=(), check=some_of("a", "b"))
    """Places."""
    limit_ms: int | None = setting(optional(LONG), default=None, check=at_least(0))
    """Limit."""
    secret: str = setting(PASSWORD, default="", sensitive=True, check=one_of("", "right"))
    """Never shown."""

    @override
    def problems(self) -> list[Problem]:
        if self.is_on and self.mode == "slow":
            return [Problem(key="mode", value=self.mode, reason="must be fast when is.on")]
        return []


class More(Sample):
    depth: int = setting(INT, default=1)
    """How deep."""


def reasons(values: dict[str, str]) -> str:
    with pytest.raises(SettingsError) as caught:
        Sample.parse(values)
    return str(caught.value)


def test_defaults_hold_until_something_is_given() -> None:
    settings = Sample.parse({"size.bytes": " 12 "})
    assert (settings.size_bytes, settings.ratio, settings.limit_ms) == (12, 0.5, None)
    assert settings.set == ("size.bytes",)
    assert settings.is_set("size.bytes")
    assert not settings.is_set("ratio")


def test_every_kind_reads_what_it_writes() -> None:
    given = {"ratio": "0.25", "is.on": "true", "mode": "fast", "hosts": "a,b", "limit.ms": "7", "secret": "right"}
    settings = Sample.parse(given)
    assert {key: settings.text_of(key) for key in given} == given


def test_unknown_key_is_refused_with_the_nearest_known_one() -> None:
    assert reasons({"size.byte": "3"}) == "size.byte=3: unknown setting; did you mean size.bytes?"


@pytest.mark.parametrize(
    "key,value,reason",
    [
        ("size.bytes", "1", "must be at least 2"),
        ("size.bytes", "big", "must be a whole number"),
        ("size.bytes", str(2**31), "must be between -2147483648 and 2147483647"),
        ("ratio", "1.5", "must be between 0 and 1"),
        ("ratio", "half", "must be a number"),
        ("is.on", "yes", "must be true or false"),
        ("mode", "medium", "must be one of slow, fast"),
        ("hosts", "a,c", "must be one or more of a, b"),
        ("zoo.keeper", "x", "there is none"),
    ],
)
def test_invalid_value_is_refused_with_what_is_allowed(key: str, value: str, reason: str) -> None:
    assert reasons({key: value}) == f"{key}={value}: {reason}"


def test_all_problems_are_told_at_once() -> None:
    assert len(reasons({"size.bytes": "1", "ratio": "x", "nonsense": "1"}).splitlines()) == 3


def test_rules_between_keys_are_checked_when_each_key_is_right() -> None:
    assert reasons({"is.on": "true"}) == "mode=slow: must be fast when is.on"


def test_alias_means_the_same_key() -> None:
    assert Sample.parse({"size": "5"}) == Sample(size_bytes=5)
    assert "different value" in reasons({"size": "5", "size.bytes": "6"})


def test_known_keys_without_effect_are_accepted_and_reported() -> None:
    given = {"num.threads": "8", "vendor.support": "x", "size": "5"}
    assert Sample.parse(given) == Sample(size_bytes=5)
    assert Sample.ignored(given) == {"num.threads": "there is one", "vendor.support": "not ours"}


def test_secret_is_never_shown() -> None:
    assert "right" not in repr(Sample.parse({"secret": "right"}))
    assert "wrong" not in reasons({"secret": "wrong"})


def test_settings_do_not_change() -> None:
    settings = Sample()
    with pytest.raises(AttributeError):
        settings.size_bytes = 3  # type: ignore[misc]  # that it is refused is the point
    assert settings.replace(size_bytes=3) == Sample(size_bytes=3) != settings


def test_code_may_build_values_outside_the_checks_but_no_unknown_ones() -> None:
    assert Sample(size_bytes=0).size_bytes == 0
    with pytest.raises(TypeError, match="nonsense"):
        Sample(nonsense=1)  # type: ignore[call-arg]  # that it is refused is the point


def test_help_is_the_docstring_under_the_field() -> None:
    assert Sample.help_of("size.bytes") == "Size of the thing."
    assert More.help_of("size.bytes") == "Size of the thing."
    assert More.help_of("depth") == "How deep."


def test_subclass_adds_to_the_keys_of_its_parents() -> None:
    assert More.parse({"depth": "2", "size": "4"}) == More(depth=2, size_bytes=4)
    assert "depth" not in Sample.DEFINITIONS


class Handing(Sample):
    IGNORED = {"client.old": "it is gone"}

    client_timeout: int = setting(INT, default=1)
    """Ours."""
    client_properties: Properties = gathered("client.", default=())
    """Anything of theirs."""


def test_what_begins_with_a_gathered_prefix_is_handed_on_without_it() -> None:
    settings = Handing.parse({"client.b.c": " 2 ", "client.a": "1", "client.timeout": "9", "client.old": "x"})
    assert settings.client_properties == (("b.c", "2"), ("a", "1"))
    assert settings.client_timeout == 9
    assert Handing.parse({}).client_properties == ()


def test_gathered_values_are_never_shown() -> None:
    settings = Handing.parse({"client.password": "secret"})
    assert "secret" not in repr(settings)
    assert settings.set == ("client.*",)
    assert settings.is_set("client.*")
    assert Handing.help_of("client.*") == "Anything of theirs."


@pytest.mark.parametrize(
    "key", ["ssl.keystore.pasword", "SSL.KEY.PASSWORD", "my.token", "sasl.jaas.confg", "ssl.keystore.key"]
)
def test_value_of_an_unknown_key_that_sounds_like_a_secret_is_not_shown(key: str) -> None:
    with pytest.raises(SettingsError) as refused:
        Settings.parse({key: "hunter2"})
    assert "hunter2" not in str(refused.value)
    assert key in str(refused.value)
