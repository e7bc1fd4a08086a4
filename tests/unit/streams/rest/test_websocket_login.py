from core_broker.service.clock import ManualClock
from core_broker.service.web.asgi import Message, Receive, Scope, Send
from core_broker.web_access.callers import caller_of
from core_broker.web_access.login import Login
from streams.rest.websocket_login import with_websocket_login
from streams.settings import StreamsSettings
from tests.support.web_login import KnownUsers, basic, scope_of

OPEN, CLOSED = "websocket.accept", "websocket.close"


async def _answer(
    *authorization: str, method: str = "BASIC", origin: bytes | None = None, kind: str = "websocket"
) -> str:
    """What a websocket is answered with, and for whom."""
    login = Login(StreamsSettings(authentication_method=(method,)), ManualClock(), passwords=[KnownUsers()])
    scope = scope_of(*authorization, path="/ws/query")
    scope["type"] = kind
    if origin is not None:
        scope["headers"].append((b"origin", origin))
    sent: list[Message] = []

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": OPEN, "caller": str(caller_of(scope).principal)})

    async def send(message: Message) -> None:
        sent.append(message)

    async def receive() -> Message:
        return {"type": "websocket.connect"}

    await with_websocket_login(app, login)(scope, receive, send)
    (message,) = sent
    return f"{message['type']} {message.get('caller', message.get('code'))}"


async def test_right_password_opens_it() -> None:
    assert await _answer(basic("alice", "secret")) == f"{OPEN} User:alice"


async def test_wrong_password_and_none_do_not() -> None:
    assert await _answer(basic("alice", "wrong")) == f"{CLOSED} 1008"
    assert await _answer() == f"{CLOSED} 1008"


async def test_without_logins_everybody_may_open_it() -> None:
    assert await _answer(method="NONE") == f"{OPEN} User:ANONYMOUS"


async def test_pages_of_other_origins_may_not() -> None:
    assert await _answer(method="NONE", origin=b"https://elsewhere.example") == f"{CLOSED} 1008"
    assert await _answer(basic("alice", "secret"), origin=b"https://test") == f"{OPEN} User:alice"


async def test_requests_are_left_to_their_own_login() -> None:
    assert await _answer(kind="http") == f"{OPEN} User:ANONYMOUS"
