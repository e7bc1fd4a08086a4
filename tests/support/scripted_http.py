"""An HTTP server with scripted responses, which records its requests."""

import ssl
import threading
from collections.abc import Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import NamedTuple, Self


class Request(NamedTuple):
    """A request that arrived."""

    method: str
    target: str
    headers: dict[str, str]
    body: bytes


class ScriptedHttp:
    """Answers with one (status, body) after the other, and with the last one from then on; None hangs up instead."""

    def __init__(
        self, *answers: tuple[int, bytes] | None, tls: ssl.SSLContext | None = None, media_type: str = ""
    ) -> None:
        self.media_type = media_type
        self.requests: list[Request] = []
        self._answers = list(answers)
        handler = type("Handler", (_Handler,), {"script": self})
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self._server.daemon_threads = True
        self._scheme = "http" if tls is None else "https"
        if tls is not None:
            self._server.socket = tls.wrap_socket(self._server.socket, server_side=True, do_handshake_on_connect=False)

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()
        return self

    def __exit__(self, *failure: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    @property
    def url(self) -> str:
        """Where the server is."""
        return f"{self._scheme}://127.0.0.1:{self._server.server_address[1]}"

    @property
    def targets(self) -> Sequence[str]:
        """Method and target of every request, in order."""
        return [f"{request.method} {request.target}" for request in self.requests]

    def answer(self, request: Request) -> tuple[int, bytes] | None:
        """The next answer."""
        self.requests.append(request)
        return self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]


class _Handler(BaseHTTPRequestHandler):
    script: ScriptedHttp
    protocol_version = "HTTP/1.1"

    def _respond(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        answer = self.script.answer(Request(self.command, self.path, dict(self.headers), body))
        if answer is None:
            self.close_connection = True
            return
        status, content = answer
        self.send_response(status)
        if self.script.media_type:
            self.send_header("Content-Type", self.script.media_type)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    do_GET = do_POST = do_PUT = do_DELETE = _respond  # noqa: N815 - the names that the base class looks for

    def log_message(self, *_: object) -> None:
        """Say nothing."""
