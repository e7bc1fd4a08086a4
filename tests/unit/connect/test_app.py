import socket

import pytest

from connect.app import advertised_url
from connect.settings import ConnectSettings

TAKEN = "http://localhost:40000"


@pytest.mark.parametrize(
    ("given", "taken", "expected"),
    [
        ({"listeners": "http://:8083"}, TAKEN, f"http://{socket.gethostname()}:40000"),
        ({"listeners": "http://0.0.0.0:8083"}, TAKEN, f"http://{socket.gethostname()}:40000"),
        ({"listeners": "http://localhost:8083"}, TAKEN, TAKEN),
        ({"listeners": "http://[::1]:0"}, "http://[::1]:40000", "http://[::1]:40000"),
        ({"listeners": "http://:0", "rest.advertised.host.name": "worker-1"}, TAKEN, "http://worker-1:40000"),
        ({"listeners": "http://localhost:0", "rest.advertised.host.name": "a"}, TAKEN, "http://a:40000"),
        ({"listeners": "http://localhost:0", "rest.advertised.port": "80"}, TAKEN, "http://localhost:80"),
    ],
)
def test_a_worker_is_found_where_it_listens_or_by_its_name(given: dict[str, str], taken: str, expected: str) -> None:
    assert advertised_url(ConnectSettings.parse(given), taken) == expected
