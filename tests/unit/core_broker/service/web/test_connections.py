import asyncio
import socket

import pytest
import uvloop

from core_broker.service.web.connections import HttpConnection, attach_connection, get_connection


async def hung_up() -> tuple[bool, bool, bool]:
    """What is known of a client that waits, that has sent more, and that has just left."""
    loop = asyncio.get_running_loop()
    made: asyncio.Future[asyncio.BaseTransport] = loop.create_future()

    read: asyncio.Future[None] = loop.create_future()

    class Server(asyncio.Protocol):
        def connection_made(self, transport: asyncio.BaseTransport) -> None:
            made.set_result(transport)

        def data_received(self, _: bytes) -> None:
            read.set_result(None)

    server = await loop.create_server(Server, "127.0.0.1", 0)
    async with server:
        with socket.create_connection(server.sockets[0].getsockname()) as client:
            transport = await asyncio.wait_for(made, 10)
            connection = HttpConnection(transport)
            waiting = connection.has_hung_up()
            client.sendall(b"x")
            sent = connection.has_hung_up()
            await asyncio.wait_for(read, 10)
        # No turn of the event loop lies between: it cannot have heard of it.
        gone = connection.has_hung_up()
        transport.close()
    return waiting, sent, gone


@pytest.mark.parametrize("loop_factory", [asyncio.new_event_loop, uvloop.new_event_loop], ids=["asyncio", "uvloop"])
def test_client_that_hangs_up_is_noticed_before_the_event_loop_hears_of_it(loop_factory: object) -> None:
    with asyncio.Runner(loop_factory=loop_factory) as runner:  # type: ignore[arg-type]  # both make loops
        waiting, sent, gone = runner.run(hung_up())
    assert (waiting, sent) == (False, False)
    assert gone


def test_connection_travels_with_the_request() -> None:
    connection = HttpConnection(None)
    scope: dict[str, object] = {}
    assert get_connection(scope) is None
    attach_connection(scope, connection)
    assert get_connection(scope) is connection
