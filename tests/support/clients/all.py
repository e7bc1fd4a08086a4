"""All clients of this machine."""

from typing import Final

from tests.support.clients.aio import AioClient
from tests.support.clients.confluent import ConfluentClient
from tests.support.clients.kcat import KCAT, KcatClient
from tests.support.clients.model import Client
from tests.support.clients.pure import PureClient

CLIENTS: Final[tuple[Client, ...]] = (ConfluentClient(), AioClient(), PureClient(), KcatClient())
INSTALLED: Final = tuple(client for client in CLIENTS if client.name != "kcat" or KCAT is not None)
