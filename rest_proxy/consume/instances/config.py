"""The configuration of a consumer instance, parsed from the request of API v2 that creates it."""

import re
from collections.abc import Mapping

import msgspec

from rest_proxy.consume.instances.errors import ConstraintViolated
from rest_proxy.errors import ProxyError
from rest_proxy.formats.formats import Format
from rest_proxy.models.v2.consumers import V2CreateInstance
from rest_proxy.settings import ProxySettings

FORMATS = tuple(format_ for format_ in Format if format_ is not Format.STRING)
"""The formats that API v2 has a media type for."""

_RESETS = {"earliest": "earliest", "latest": "latest", "none": "error"}
"""Kafka's values, and what the client library calls them."""
_MIN_BYTES_MAX = 10_000_000
_TIMEOUT_MAX_MS = 2**31 - 1
_NAME = re.compile(r"[^\x00-\x1f\x7f]{1,255}")
_SPACE = " "
"""The client library trims names, and aborts the process if nothing is left."""


class InstanceConfig(msgspec.Struct, frozen=True, kw_only=True):
    """How an instance reads; saved in its file, too."""

    format: Format
    auto_offset_reset: str
    """earliest, latest, or error, which is the library's name for `none`."""
    auto_commit_enable: bool
    fetch_min_bytes: int
    """How many bytes a poll waits for; -1 to wait until its time is up."""
    request_timeout_ms: int
    properties: dict[str, str] = {}
    """Further properties of the client library."""


def parse(asked: V2CreateInstance, settings: ProxySettings) -> InstanceConfig:
    """Parse the configuration; raises ProxyError with the key, the value and what is allowed."""
    default_reset = dict(settings.consumer_properties).get("auto.offset.reset", "latest")
    reset = str(_first_set(asked.auto_offset_reset, default_reset))
    if reset.lower() not in _RESETS:
        raise _invalid("auto.offset.reset", reset, "String must be one of: latest, earliest, none")
    min_bytes = _parse_integer(
        "fetch.min.bytes", _first_set(asked.fetch_min_bytes, asked.response_min_bytes, settings.fetch_min_bytes)
    )
    if not -1 <= min_bytes <= _MIN_BYTES_MAX:
        raise ConstraintViolated(
            40001,
            "Invalid consumer configuration. It does not abide by the constraints: Invalid value "
            f"{min_bytes} for configuration fetch.min.bytes: Value must be between -1 and {_MIN_BYTES_MAX}",
        )
    timeout = _parse_integer(
        "consumer.request.timeout.ms",
        _first_set(asked.consumer_request_timeout_ms, asked.request_wait_ms, settings.consumer_request_timeout_ms),
    )
    if not 0 <= timeout <= _TIMEOUT_MAX_MS:
        raise _invalid("consumer.request.timeout.ms", timeout, f"Value must be between 0 and {_TIMEOUT_MAX_MS}")
    return InstanceConfig(
        format=_parse_format(asked.format),
        auto_offset_reset=_RESETS[reset.lower()],
        auto_commit_enable=_parse_boolean("auto.commit.enable", _first_set(asked.auto_commit_enable, True)),
        fetch_min_bytes=min_bytes,
        request_timeout_ms=timeout,
        properties=_parse_properties(asked.library_properties()),
    )


def check_name(kind: str, name: str) -> None:
    """Raise ProxyError for a group or an instance whose name would break Kafka's client, a URL or a log line."""
    if not _NAME.fullmatch(name):
        raise _invalid(kind, name[:80], "must have 1 to 255 characters, none of them a control character")
    if name in (".", ".."):
        raise _invalid(kind, name, "cannot be a part of a URL")
    if name != name.strip(_SPACE):
        raise _invalid(kind, f"'{name[:80]}'", "must neither begin nor end with a space")


def _first_set(*values: str | int | bool | None) -> str | int | bool:
    """The first that is not None; the last one, the default, never is."""
    return next(value for value in values if value is not None)


def _parse_format(name: str | None) -> Format:
    wanted = (name or Format.BINARY).lower()
    for format_ in FORMATS:
        if wanted == format_:
            return format_
    raise ProxyError(422, f"Invalid format type. {name!r:.80} must be one of: {', '.join(FORMATS)}")


def _parse_integer(key: str, value: str | int | bool) -> int:
    text = str(value).strip()
    if isinstance(value, bool) or not re.fullmatch(r"[+-]?[0-9]{1,19}", text, re.ASCII):
        raise _invalid(key, value, "Not a number")
    return int(text)


def _parse_boolean(key: str, value: str | int | bool) -> bool:
    text = str(value).strip().lower()
    if text not in ("true", "false"):
        raise _invalid(key, value, "Expected value to be either true or false")
    return text == "true"


def _parse_properties(properties: Mapping[str, str | int | bool]) -> dict[str, str]:
    for key, value in properties.items():
        if not _NAME.fullmatch(str(value)):
            raise _invalid(key, str(value)[:80], "must have 1 to 255 characters, none of them a control character")
    return {key: str(value).lower() if isinstance(value, bool) else str(value) for key, value in properties.items()}


def _invalid(key: str, value: object, reason: str) -> ProxyError:
    problem = f"Invalid value {str(value)[:80]} for configuration {key}: {reason}"
    return ProxyError(42204, f"Invalid consumer configuration: {problem}")
