import pytest
from fastapi import Request

from rest_proxy.routes.services import base_url


def sent_to(host: str | None, *, scheme: str = "http", server: tuple[str, int] = ("10.0.0.1", 8082)) -> Request:
    headers = [] if host is None else [(b"host", host.encode("latin-1"))]
    return Request({"type": "http", "scheme": scheme, "server": server, "headers": headers, "path": "/"})


@pytest.mark.parametrize("host", ["localhost:8082", "proxy.example.com", "[::1]:8082", "127.0.0.1"])
def test_address_is_where_the_request_was_sent_to(host: str) -> None:
    assert base_url(sent_to(host), ()) == f"http://{host}"


@pytest.mark.parametrize("host", [None, "", "a b", "a/b", "[", "a:b", "\xff", "a" * 300, 'x"y'])
def test_host_that_is_none_gives_way_to_the_listener(host: str | None) -> None:
    assert base_url(sent_to(host), ()) == "http://10.0.0.1:8082"
    assert base_url(sent_to(host, server=("::1", 8082)), ()) == "http://[::1]:8082"


def test_advertised_address_of_the_scheme_counts() -> None:
    advertised = ("https://secure.example.com/", "http://plain.example.com:80")
    assert base_url(sent_to("localhost"), advertised) == "http://plain.example.com:80"
    assert base_url(sent_to("localhost", scheme="https"), advertised) == "https://secure.example.com"
    assert base_url(sent_to("localhost"), advertised[:1]) == "http://localhost"
