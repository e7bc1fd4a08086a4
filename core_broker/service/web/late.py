"""An application that is there before it can answer: its port is known, and who asks is told to wait."""

from core_broker.service.web.asgi import Application, Receive, Scope, Send
from core_broker.service.web.errors import envelope


class LateApplication:
    """Answers 503 until its application is set."""

    def __init__(self, message: str) -> None:
        self._message = message
        self.application: Application | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or say that it is too early."""
        if self.application is not None:
            await self.application(scope, receive, send)
        elif scope["type"] == "http":
            answer = envelope(503, 503, self._message)
            answer.headers["retry-after"] = "1"
            await answer(scope, receive, send)
