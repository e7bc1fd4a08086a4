"""Settings of HTTP services: addresses that cannot be meant are refused at start."""

import pytest

from core_broker.service.settings import SettingsError
from core_broker.service.web.settings import WebSettings


@pytest.mark.parametrize(
    "listeners", ["http://:8081", "http://localhost:0", "http://[::1]:80,http://0.0.0.0:81", "http://127.0.0.1:8081/"]
)
def test_addresses_are_accepted(listeners: str) -> None:
    assert WebSettings.parse({"listeners": listeners}).listeners == tuple(listeners.split(","))


@pytest.mark.parametrize(
    "listener,reason",
    [
        ("localhost:8081", "must be http://host:port"),
        ("http://localhost", "must be http://host:port"),
        ("ftp://localhost:1", "must be http://host:port"),
        ("http://localhost:99999", "Port out of range"),
        ("http://localhost:1/path", "must be http://host:port"),
        ("https://localhost:1", "ssl.certificate.location"),
    ],
)
def test_a_wrong_address_is_refused_with_the_reason(listener: str, reason: str) -> None:
    with pytest.raises(SettingsError, match=reason):
        WebSettings.parse({"listeners": listener})
