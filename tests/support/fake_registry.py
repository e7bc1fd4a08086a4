"""A schema registry that fails as it is told to: a real HTTP server with the calls that guarded topics need."""

import base64
import hashlib
import json
import threading
import uuid
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Self
from urllib.parse import parse_qs, unquote, urlsplit

from tests.support.registry import AVRO, Registered, register


class FakeRegistry:
    """A registry that can be stopped, started again on its port, held up, and asked what it was asked."""

    def __init__(self, *, credentials: str | None = None) -> None:
        self.asked: list[str] = []
        """The path of every GET, in order."""
        self.answers: dict[str, tuple[int, bytes]] = {}
        """What to say to a path instead of the truth."""
        self.go = threading.Event()
        """While it is not set, no GET is answered."""
        self.go.set()
        self.asked_now = threading.Semaphore(0)
        """Released by every GET that arrives."""
        self.authorization = credentials and f"Basic {base64.b64encode(credentials.encode()).decode()}"
        self.schemas: dict[int, tuple[str, str]] = {}
        self.subjects: dict[str, list[int]] = {}
        self._port = 0
        self._server: ThreadingHTTPServer | None = None

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *failure: object) -> None:
        self.stop()

    @property
    def url(self) -> str:
        """Where the registry is, running or not."""
        return f"http://127.0.0.1:{self._port}"

    def start(self) -> Self:
        """Listen, on the same port as before."""
        handler = type("Handler", (_Handler,), {"registry": self})
        self._server = ThreadingHTTPServer(("127.0.0.1", self._port), handler)
        self._server.daemon_threads = True
        self._port = self._server.server_address[1]
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()
        return self

    def stop(self) -> None:
        """Close the port and every connection."""
        self.go.set()
        if self._server is not None:
            server, self._server = self._server, None
            server.shutdown()
            server.server_close()

    def register(self, subject: str, schema: str = AVRO, *, kind: str = "AVRO") -> Registered:
        """Register a schema."""
        return register(self.url, subject, schema, kind=kind)

    def respond(self, method: str, target: str, body: bytes) -> tuple[int, bytes]:
        """The answer to a request: status and body."""
        path = urlsplit(target).path
        query = {key: values[0] for key, values in parse_qs(urlsplit(target).query).items()}
        words = [unquote(word) for word in path.strip("/").split("/")]
        if path in self.answers:
            return self.answers[path]
        match method, words:
            case "POST", ["subjects", subject, "versions"]:
                return _json(self._register(subject, json.loads(body)))
            case "DELETE", ["subjects", subject]:
                self.subjects.pop(subject)
                return _json([1])
            case "GET", ["schemas", "ids", number, "versions"]:
                return self._versions(int(number), query.get("subject"))
            case "GET", ["schemas", "ids", number]:
                return self._schema(int(number))
            case "GET", ["schemas", "guids", guid, "ids"]:
                found = [{"context": ".", "id": n} for n, (text, _) in self.schemas.items() if _guid(text) == guid]
                return _json(found) if found else _UNKNOWN
            case _:
                return 404, b'{"error_code":404,"message":"HTTP 404 Not Found"}'

    def _register(self, subject: str, body: dict[str, str]) -> dict[str, object]:
        content = (body["schema"], body.get("schemaType", "AVRO"))
        known = next((number for number, schema in self.schemas.items() if schema == content), None)
        number = known or len(self.schemas) + 1
        self.schemas[number] = content
        versions = self.subjects.setdefault(subject, [])
        if number not in versions:
            versions.append(number)
        return {"id": number, "guid": _guid(content[0])}

    def _versions(self, number: int, subject: str | None) -> tuple[int, bytes]:
        if number not in self.schemas:
            return _UNKNOWN
        found = [
            {"subject": name, "version": ids.index(number) + 1}
            for name, ids in list(self.subjects.items())
            if number in ids and subject in (None, name)
        ]
        return _json(found)

    def _schema(self, number: int) -> tuple[int, bytes]:
        if number not in self.schemas:
            return _UNKNOWN
        text, kind = self.schemas[number]
        return _json({"schema": text} | ({} if kind == "AVRO" else {"schemaType": kind}))


_UNKNOWN = (404, b'{"error_code":40403,"message":"Schema not found"}')


def _json(value: object) -> tuple[int, bytes]:
    return 200, json.dumps(value).encode()


def _guid(text: str) -> str:
    return str(uuid.UUID(bytes=hashlib.md5(text.encode(), usedforsecurity=False).digest()))


class _Handler(BaseHTTPRequestHandler):
    """Speaks HTTP for a registry; connections last for one request, so that a stopped registry is gone at once."""

    registry: FakeRegistry
    timeout = 20

    def do_GET(self) -> None:
        self.registry.asked.append(self.path)
        self.registry.asked_now.release()
        self.registry.go.wait(20)
        if self.registry.authorization not in (None, self.headers.get("Authorization")):
            self._answer(401, b'{"error_code":401,"message":"Unauthorized"}')
            return
        self._answer(*self.registry.respond("GET", self.path, b""))

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self._answer(*self.registry.respond("POST", self.path, body))

    def do_DELETE(self) -> None:
        self._answer(*self.registry.respond("DELETE", self.path, b""))

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name is the standard library's
        """Say nothing."""

    def _answer(self, status: int, body: bytes) -> None:
        try:
            self.send_response(status)
            self.send_header("Content-Type", "application/vnd.schemaregistry.v1+json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)
        except OSError:
            pass  # whoever asked has gone
