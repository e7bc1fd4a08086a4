"""A server with ksqlDB's API and scripted answers by statement, for tests of what a terminal makes of them."""

import json
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

INFO = {"version": "8.1.0", "kafkaClusterId": "river", "ksqlServiceId": "shop_", "serverStatus": "RUNNING"}
Answer = tuple[int, Any]


def header(schema: str, query: str = "transient_1") -> dict[str, Any]:
    """The first object of an answer with rows."""
    return {"header": {"queryId": query, "schema": schema}}


def row(*columns: Any, is_deleted: bool = False) -> dict[str, Any]:
    """A row of such an answer."""
    return {"row": {"columns": list(columns), **({"tombstone": True} if is_deleted else {})}}


class ScriptedSql:
    """Answers /ksql with (status, body) by the text of the statement, and /query with objects or lines."""

    def __init__(
        self,
        answers: Mapping[str, Answer] | None = None,
        queries: Mapping[str, Sequence[Any]] | None = None,
        *,
        pause_s: float = 0.0,
    ) -> None:
        self.answers = dict(answers or {})
        self.queries = dict(queries or {})
        self.pause_s = pause_s
        self.bodies: list[dict[str, Any]] = []
        """What was sent to /ksql and /query."""
        self.targets: list[str] = []
        handler = type("Handler", (_Handler,), {"script": self})
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self._server.daemon_threads = True

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()
        return self

    def __exit__(self, *failure: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    @property
    def url(self) -> str:
        """Where the server is."""
        return f"http://127.0.0.1:{self._server.server_address[1]}"


class _Handler(BaseHTTPRequestHandler):
    script: ScriptedSql
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self.script.targets.append(self.path)
        if self.path == "/info":
            self._send(200, {"KsqlServerInfo": INFO})
        elif self.path in self.script.answers:
            self._send(*self.script.answers[self.path])
        else:
            self._send(200, True)

    def do_POST(self) -> None:
        self.script.targets.append(self.path)
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.script.bodies.append(body)
        text = " ".join(str(body.get("ksql", "")).rstrip(";").split())
        if self.path == "/query" and text in self.script.queries:
            with suppress(BrokenPipeError, ConnectionResetError):  # the query was ended by Ctrl-C
                self._stream(self.script.queries[text])
        elif text in self.script.answers:
            self._send(*self.script.answers[text])
        else:
            self._send(200, [])

    def _send(self, status: int, body: Any) -> None:
        content = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def _stream(self, items: Sequence[Any]) -> None:
        self.send_response(200)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for number, item in enumerate(items):
            if isinstance(item, str):
                self._chunk(f"{item}\n")
            else:
                self._chunk(("[" if number == 0 else ",\n") + json.dumps(item))
            time.sleep(self.script.pause_s)
        self._chunk("" if items and isinstance(items[0], str) else "]\n")
        self.wfile.write(b"0\r\n\r\n")

    def _chunk(self, text: str) -> None:
        content = text.encode()
        if content:
            self.wfile.write(f"{len(content):x}\r\n".encode() + content + b"\r\n")
            self.wfile.flush()

    def log_message(self, *_: object) -> None:
        """Say nothing."""
