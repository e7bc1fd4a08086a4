"""The clients that every flow is tried with."""

import pytest

from tests.support.clients.all import CLIENTS
from tests.support.clients.kcat import KCAT
from tests.support.clients.model import Client

needs_kcat = (pytest.mark.kcat, pytest.mark.skipif(KCAT is None, reason="the command kcat is not installed"))


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run a test that asks for `client`, `writer` or `reader` once with each client."""
    for role in ("client", "writer", "reader"):
        if role in metafunc.fixturenames:
            metafunc.parametrize(role, [_param(client) for client in CLIENTS])


def _param(client: Client) -> object:
    return pytest.param(client, id=client.name, marks=needs_kcat if client.name == "kcat" else ())
