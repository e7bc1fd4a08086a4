"""Certificates of https listeners: renewed while the service runs, and those of clients."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from cryptography import x509

from core_broker.service.web.asgi import Receive, Scope, Send
from core_broker.service.web.connections import get_connection
from core_broker.service.web.errors import envelope
from core_broker.service.web.server import serving
from core_broker.service.web.settings import WebSettings
from core_broker.service.web.tls import RenewedContext, listener_context
from tests.support.authority import AuthorityFolder
from tests.support.patience import PATIENCE_S, eventually_async


class World:
    """A folder with the certificates of a listener that is open."""

    def __init__(self, folder: Path, **more: str) -> None:
        self.authority = AuthorityFolder(folder)
        self.shown = self.authority.issue("server", file=folder / "server.pem")
        given = {"ssl.certificate.location": str(self.shown), **{k.replace("_", "."): v for k, v in more.items()}}
        self.settings = WebSettings.parse({"listeners": "https://127.0.0.1:0", "shutdown.timeout.ms": "0", **given})


@asynccontextmanager
async def listening(context: RenewedContext) -> AsyncIterator[int]:
    async def answer(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0, ssl=context)
    async with server:
        yield server.sockets[0].getsockname()[1]


async def subject_shown(port: int) -> str:
    """The subject of the certificate that a new connection gets."""
    trusting = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    trusting.check_hostname, trusting.verify_mode = False, ssl.CERT_NONE
    async with asyncio.timeout(PATIENCE_S):
        _, writer = await asyncio.open_connection("127.0.0.1", port, ssl=trusting)
        der = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
        writer.transport.abort()
    return x509.load_der_x509_certificate(der).subject.rfc4514_string()


@asynccontextmanager
async def watched(context: RenewedContext, settings: WebSettings) -> AsyncIterator[None]:
    async with asyncio.TaskGroup() as group:
        watching = group.create_task(context.watch(settings, seconds=0.005))
        yield
        watching.cancel()


async def test_a_new_certificate_is_shown_to_new_connections(tmp_path: Path) -> None:
    world = World(tmp_path)
    context = listener_context(world.settings)
    async with listening(context) as port, watched(context, world.settings):
        assert await subject_shown(port) == "CN=server"
        world.authority.issue("renewed", file=world.shown)
        await eventually_async(lambda: subject_shown(port), lambda subject: subject == "CN=renewed")


async def test_a_certificate_that_cannot_be_used_changes_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    world = World(tmp_path)
    context = listener_context(world.settings)
    async with listening(context) as port, watched(context, world.settings):
        for broken in ("", "no certificate", None):
            caplog.clear()
            world.shown.unlink() if broken is None else world.shown.write_text(broken)
            async with asyncio.timeout(PATIENCE_S):
                while "still get the old ones" not in caplog.text:  # noqa: ASYNC110 - the log is what there is
                    await asyncio.sleep(0.005)
            assert await subject_shown(port) == "CN=server"
        world.authority.issue("renewed", file=world.shown)
        await eventually_async(lambda: subject_shown(port), lambda subject: subject == "CN=renewed")


@pytest.mark.parametrize("broken", ["", "no certificate"])
def test_a_certificate_that_cannot_be_used_is_an_error_at_the_start(tmp_path: Path, broken: str) -> None:
    world = World(tmp_path)
    world.shown.write_text(broken)
    with pytest.raises(OSError):
        listener_context(world.settings)


def test_a_key_with_a_password_is_not_asked_for_on_the_terminal(tmp_path: Path) -> None:
    from tests.support.certificates import Authority

    file = Authority().issue().save(tmp_path / "locked.pem", password="secret")
    settings = WebSettings.parse({"ssl.certificate.location": str(file)})
    with pytest.raises(OSError):
        listener_context(settings)
    listener_context(settings.replace(ssl_key_password="secret"))


async def certificate_seen(world: World, client: Path | None) -> str | None:
    """The subject that the application sees of a client, empty without a certificate; None if TLS ends first."""
    trusting = ssl.create_default_context(cafile=str(world.authority.trust_store))
    if client is not None:
        trusting.load_cert_chain(client)
    async with asyncio.timeout(PATIENCE_S), serving(_show_certificate, world.settings) as urls:
        reader, writer = await asyncio.open_connection("127.0.0.1", int(urls[0].rpartition(":")[2]), ssl=trusting)
        writer.write(b"GET / HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n")
        try:
            answer = await reader.read()
        except OSError:
            answer = b""
        writer.transport.abort()
    return None if not answer else answer.decode().partition('"message":"')[2].partition('"')[0]


async def _show_certificate(scope: Scope, receive: Receive, send: Send) -> None:
    connection = get_connection(scope)
    assert connection is not None
    der = connection.peer_certificate()
    subject = "" if der is None else x509.load_der_x509_certificate(der).subject.rfc4514_string()
    await envelope(200, 0, subject)(scope, receive, send)


REQUESTED: Mapping[str, str] = {"ssl_client_authentication": "REQUESTED"}


async def test_an_application_sees_the_certificate_of_a_client(tmp_path: Path) -> None:
    world = World(tmp_path, ssl_ca_location=str(tmp_path / "authority.pem"))
    assert await certificate_seen(world, world.authority.issue("alice")) == "CN=alice"


async def test_a_required_certificate_must_be_there(tmp_path: Path) -> None:
    world = World(tmp_path, ssl_ca_location=str(tmp_path / "authority.pem"))
    assert await certificate_seen(world, None) is None


async def test_a_requested_certificate_need_not_be_there(tmp_path: Path) -> None:
    world = World(tmp_path, ssl_ca_location=str(tmp_path / "authority.pem"), **REQUESTED)
    assert await certificate_seen(world, None) == ""
    assert await certificate_seen(world, world.authority.issue("alice")) == "CN=alice"


@pytest.mark.parametrize("is_expired", [True, False])
async def test_a_certificate_of_nobody_we_trust_is_refused_even_if_none_is_required(
    tmp_path: Path, is_expired: bool
) -> None:
    world = World(tmp_path, ssl_ca_location=str(tmp_path / "authority.pem"), **REQUESTED)
    stranger = AuthorityFolder(tmp_path / "other").issue("alice")
    shown = world.authority.issue("alice", has_expired=True) if is_expired else stranger
    assert await certificate_seen(world, shown) is None
