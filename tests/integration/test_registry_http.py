"""The registry over HTTP, as any client meets it: paths, media types, errors, paging, deletes, scopes."""

import json
import re
from collections.abc import Iterator
from itertools import count
from typing import Any
from urllib.parse import quote

import httpx2
import pytest

from tests.support.registry import RegistryProcess

V1 = "application/vnd.schemaregistry.v1+json"
NUMBERS = count(1)


def record(*fields: str, name: str = "Order") -> str:
    """An Avro record of strings; a field that ends in `?` has a default."""
    described = [
        {"name": field.rstrip("?"), "type": "string", **({"default": ""} if field.endswith("?") else {})}
        for field in fields
    ]
    return json.dumps({"type": "record", "name": name, "fields": described}, separators=(",", ":"))


class Client:
    """Requests as raw as they can be: a path is sent as it is written."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._http = httpx2.Client(timeout=30)

    def ask(self, method: str, path: str, body: Any = None, **headers: str) -> httpx2.Response:
        """Any request; a body that is no bytes is sent as JSON."""
        content = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return self._http.request(method, self._url + path, content=content, headers=named)

    def get(self, path: str) -> Any:
        """The answer to a GET that succeeds."""
        answer = self.ask("GET", path)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def register(self, subject: str, text: str, **body: Any) -> Any:
        """Register a schema."""
        answer = self.ask("POST", f"/subjects/{quote(subject, safe='')}/versions", {"schema": text, **body})
        assert answer.status_code == 200, answer.text
        return answer.json()

    def error(self, method: str, path: str, body: Any = None) -> tuple[int, int, str]:
        """Status, code and message of a refusal."""
        answer = self.ask(method, path, body)
        assert set(answer.json()) == {"error_code", "message"}, answer.text
        return answer.status_code, answer.json()["error_code"], answer.json()["message"]

    def close(self) -> None:
        """Close all connections."""
        self._http.close()


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    """A client of one registry for all tests here: each has subjects and contexts of its own."""
    with RegistryProcess(tmp_path_factory.mktemp("registry")) as process:
        client = Client(process.url)
        yield client
        client.close()


@pytest.fixture
def subject() -> str:
    """A name that no other test has."""
    return f"subject-{next(NUMBERS)}"


# --- media types, methods, paths ---


@pytest.mark.parametrize(
    "accept,expected",
    [
        ("*/*", V1),
        ("*", V1),
        ("application/*", V1),
        ("application/json", "application/json"),
        ("application/vnd.schemaregistry+json", "application/vnd.schemaregistry+json"),
        (f"{V1}, application/vnd.schemaregistry+json, application/json", V1),
        ("application/vnd.schemaregistry.v2+json; q=0.1, application/json; q=0.9", "application/json"),
    ],
)
def test_an_answer_has_the_type_that_is_asked_for(client: Client, accept: str, expected: str) -> None:
    answer = client.ask("GET", "/subjects", accept=accept)
    assert (answer.status_code, answer.headers["content-type"]) == (200, expected)


@pytest.mark.parametrize("accept", ["text/html", "text/*", "application/octet-stream", "application/avro"])
def test_other_answers_are_not_to_be_had(client: Client, accept: str) -> None:
    answer = client.ask("GET", "/subjects", accept=accept)
    assert (answer.status_code, answer.json()) == (406, {"error_code": 406, "message": "HTTP 406 Not Acceptable"})


@pytest.mark.parametrize(
    "content_type,encoding",
    [
        (V1, "utf-8"),
        (f"{V1}; charset=utf-8", "utf-8"),
        (f"{V1}; charset=utf-16", "utf-16"),
        ("application/vnd.schemaregistry+json", "utf-8"),
        ("application/json", "utf-8"),
        ("APPLICATION/JSON", "utf-8"),
        ("application/octet-stream", "utf-8"),
    ],
)
def test_a_body_may_be_called_by_any_of_the_types(
    client: Client, subject: str, content_type: str, encoding: str
) -> None:
    body = json.dumps({"schema": record("a")}).encode(encoding)
    answer = client.ask("POST", f"/subjects/{subject}/versions", body, content_type=content_type)
    assert (answer.status_code, answer.headers["content-type"]) == (200, V1)


def test_a_body_without_a_type_is_read(client: Client, subject: str) -> None:
    assert client.ask("PUT", f"/config/{subject}", {"compatibility": "FULL"}).json() == {"compatibility": "FULL"}


def test_other_bodies_are_refused(client: Client) -> None:
    answer = client.ask("PUT", "/config", {"compatibility": "NONE"}, content_type="text/html")
    expected = {"error_code": 415, "message": "HTTP 415 Unsupported Media Type"}
    assert (answer.status_code, answer.json(), answer.headers["content-type"]) == (415, expected, V1)


@pytest.mark.parametrize(
    "method,path,status,message",
    [
        ("GET", "/no-such-thing", 404, "HTTP 404 Not Found"),
        ("GET", "/schemas/ids/seven", 404, "HTTP 404 Not Found"),
        ("GET", "/subjects/a/b/c", 404, "HTTP 404 Not Found"),
        ("DELETE", "/subjects", 405, "HTTP 405 Method Not Allowed"),
        ("PATCH", "/config", 405, "HTTP 405 Method Not Allowed"),
    ],
)
def test_what_is_not_there(client: Client, method: str, path: str, status: int, message: str) -> None:
    assert client.error(method, path) == (status, status, message)


@pytest.mark.parametrize("body", [b"{", b"[]", b'"text"', b'{"schema": 5}', b'{"schema": "x", "references": 1}'])
def test_a_body_that_cannot_be_read_is_the_clients_fault(client: Client, subject: str, body: bytes) -> None:
    assert client.error("POST", f"/subjects/{subject}/versions", body)[:2] == (400, 400)


@pytest.mark.parametrize("body", [b"", b"null"])
def test_every_operation_that_needs_a_body_refuses_none_as_confluent_does(client: Client, body: bytes) -> None:
    needing = [
        (method.upper(), re.sub(r"{.+?}", "1", path))
        for path, operations in client.get("/openapi.json")["paths"].items()
        for method, operation in operations.items()
        if operation.get("requestBody", {}).get("required")
    ]
    assert {("POST", "/subjects/1/versions"), ("PUT", "/mode"), ("POST", "/associations:batchGet")} < set(needing)
    for method, path in needing:
        refused = (422, 422, "The request needs a body")
        assert client.error(method, path, body) == refused, (method, path)


def test_nothing_at_the_root(client: Client) -> None:
    assert (client.get(""), client.get("/"), client.ask("POST", "/").json()) == ({}, {}, {})


def test_a_head_is_a_get_without_its_body(client: Client, subject: str) -> None:
    client.register(subject, record("a"))
    whole = client.ask("GET", f"/subjects/{subject}/versions/1")
    head = client.ask("HEAD", f"/subjects/{subject}/versions/1")
    assert (head.status_code, head.content) == (200, b"")
    assert head.headers["content-length"] == whole.headers["content-length"]
    assert client.ask("HEAD", f"/subjects/{subject}/versions/2").status_code == 404


def test_unknown_properties_and_headers_are_ignored(client: Client, subject: str) -> None:
    body = {"schema": record("a"), "no_such_property": 1, "references": [], "metadata": None, "ruleSet": None}
    headers = {"X_Forward": "true", "Confluent_Accept_Unknown_Properties": "true", "Target_Sr_Cluster": "lsrc-1"}
    assert client.ask("POST", f"/subjects/{subject}/versions?normalize=false", body, **headers).status_code == 200


@pytest.mark.parametrize(
    "path",
    ["/subjects/{}/versions", "/subjects/{}/versions/1", "/subjects/{}/versions/latest", "/subjects/{}/versions/-1",
     "/subjects/{}/versions/1/schema", "/subjects/{}/versions/1/referencedby", "/subjects", "/schemas/types",
     "/config", "/mode", "/config/{}?defaultToGlobal=true", "/mode/{}?defaultToGlobal=true", "/contexts"],
)  # fmt: skip
def test_a_slash_at_the_end_changes_nothing(client: Client, subject: str, path: str) -> None:
    client.register(subject, record("a"))
    path, _, query = path.format(subject).partition("?")
    assert client.get(f"{path}/?{query}") == client.get(f"{path}?{query}")


@pytest.mark.parametrize("name", ["a/b", "a b", "100%", "a?b#c", "a+b", "ü/日本", "a..b", "versions", "a:b", "%2F"])
def test_subjects_have_any_name(client: Client, subject: str, name: str) -> None:
    name = f"{subject}-{name}"
    client.register(name, record("a"))
    path = f"/subjects/{quote(name, safe='')}"
    assert name in client.get("/subjects")
    assert client.get(f"{path}/versions") == [1]
    assert client.get(f"{path}/versions/1")["subject"] == name
    assert client.ask("DELETE", path).json() == [1]


def test_a_subject_with_control_characters_is_refused(client: Client) -> None:
    assert client.error("POST", "/subjects/a%0Ab/versions", {"schema": record("a")})[:2] == (422, 42208)


# --- answers ---


def test_the_response_of_a_registration(client: Client, subject: str) -> None:
    registered = client.register(subject, record("a"), metadata={"properties": {"owner": "me"}})
    assert set(registered) == {"id", "version", "guid", "schemaType", "schema", "metadata", "ts", "deleted"}
    assert (registered["version"], registered["schemaType"], registered["deleted"]) == (1, "AVRO", False)
    assert client.get(f"/subjects/{subject}/versions/1") == registered | {"subject": subject}
    by_id = client.get(f"/schemas/ids/{registered['id']}")
    assert by_id == {key: value for key, value in registered.items() if key not in ("id", "version")}
    assert client.get(f"/schemas/guids/{registered['guid']}") == by_id
    assert client.get(f"/schemas/guids/{registered['guid']}/ids") == [{"context": ".", "id": registered["id"]}]


def test_texts_alone_are_not_quoted(client: Client, subject: str) -> None:
    proto = 'syntax = "proto3";\n\nmessage A {\n  string a = 1;\n}\n'
    registered = client.register(subject, proto, schemaType="PROTOBUF")
    for path in (f"/schemas/ids/{registered['id']}/schema", f"/subjects/{subject}/versions/1/schema"):
        assert client.ask("GET", path).text == proto


def test_the_highest_id_is_returned_on_request(client: Client, subject: str) -> None:
    registered = client.register(subject, record("a", name="Highest"))
    assert "maxId" not in client.get(f"/schemas/ids/{registered['id']}?fetchMaxId=false")
    assert client.get(f"/schemas/ids/{registered['id']}?fetchMaxId=true")["maxId"] >= registered["id"]


@pytest.mark.parametrize("version", ["0", "-2", "earliest", "1.5", "2147483648"])
def test_versions_that_cannot_be(client: Client, subject: str, version: str) -> None:
    client.register(subject, record("a"))
    expected = (
        f"The specified version '{version}' is not a valid version id. "
        'Allowed values are between [1, 2^31-1] and the string "latest"'
    )
    assert client.error("GET", f"/subjects/{subject}/versions/{version}") == (422, 42202, expected)
    assert client.error("DELETE", f"/subjects/{subject}/versions/{version}")[:2] == (422, 42202)


def test_missing_subjects_versions_and_schemas_have_different_errors(client: Client, subject: str) -> None:
    missing = (404, 40401, f"Subject '{subject}' not found.")
    for method, path, body in [
        ("GET", "/versions", None),
        ("GET", "/versions/1", None),
        ("GET", "/versions/latest/schema", None),
        ("DELETE", "", None),
        ("DELETE", "/versions/1", None),
        ("POST", "", {"schema": record("a")}),
        ("POST", "", {}),
    ]:
        assert client.error(method, f"/subjects/{subject}{path}", body) == missing
    assert client.error("POST", f"/subjects/{subject}/versions", {}) == (422, 42201, "Empty schema")
    client.register(subject, record("a"))
    assert client.error("GET", f"/subjects/{subject}/versions/9") == (404, 40402, "Version 9 not found.")
    looked_up = client.error("POST", f"/subjects/{subject}", {"schema": record("z")})
    assert looked_up == (404, 40403, "Schema not found")
    assert client.error("GET", "/schemas/ids/2147483647") == (404, 40403, "Schema 2147483647 not found")


# --- lists ---


def test_lists_can_be_read_in_parts(client: Client, subject: str) -> None:
    for number in range(4):
        client.register(f"{subject}-{number}", record(f"f{number}"))
    listed = f"/subjects?subjectPrefix={subject}-"
    assert client.get(f"{listed}&offset=1&limit=2") == [f"{subject}-1", f"{subject}-2"]
    assert client.get(f"{listed}&offset=9") == []
    assert len(client.get(f"{listed}&limit=-1")) == 4
    schemas = f"/schemas?subjectPrefix={subject}-"
    assert [schema["subject"] for schema in client.get(f"{schemas}&offset=3&limit=5")] == [f"{subject}-3"]


def test_schemas_can_be_listed_by_their_latest_versions(client: Client, subject: str) -> None:
    client.register(subject, record("a"))
    client.register(subject, record("a", "b?"))
    path = f"/schemas?subjectPrefix={subject}"
    assert [schema["version"] for schema in client.get(path)] == [1, 2]
    assert [schema["version"] for schema in client.get(f"{path}&latestOnly=true")] == [2]


# --- deletes ---


def test_the_life_of_a_version(client: Client, subject: str) -> None:
    path = f"/subjects/{subject}/versions/1"
    schema_id = client.register(subject, record("a", name="Lived"))["id"]
    client.register(subject, record("a", "b?", name="Lived"))
    assert client.get(f"/subjects/{subject}/versions?deletedOnly=true") == []
    assert client.error("DELETE", f"{path}?permanent=true")[1] == 40407
    assert client.ask("DELETE", path).json() == 1
    assert client.error("DELETE", path)[1] == 40406
    assert client.error("GET", path)[1] == 40402
    assert client.get(f"{path}?deleted=true")["deleted"] is True
    assert client.get(f"/schemas/ids/{schema_id}")["deleted"] is True
    assert client.get(f"/schemas/ids/{schema_id}/versions") == []
    assert client.get(f"/subjects/{subject}/versions") == [2]
    assert client.get(f"/subjects/{subject}/versions?deleted=true&deletedAsNegative=true") == [-1, 2]
    assert client.get(f"/subjects/{subject}/versions?deletedOnly=true") == [1]
    assert client.ask("DELETE", f"{path}?permanent=true").json() == 1
    assert client.error("GET", f"{path}?deleted=true")[1] == 40402
    assert client.error("GET", f"/schemas/ids/{schema_id}")[1] == 40403


def test_the_life_of_a_subject(client: Client, subject: str) -> None:
    path = f"/subjects/{subject}"
    client.register(subject, record("a"))
    assert client.error("DELETE", f"{path}?permanent=true")[1] == 40405
    assert client.ask("DELETE", path).json() == [1]
    assert client.error("DELETE", path)[1] == 40404
    assert subject not in client.get("/subjects")
    assert subject in client.get("/subjects?deleted=true")
    assert subject in client.get("/subjects?deletedOnly=true")
    assert client.register(subject, record("a"))["version"] == 2
    assert client.ask("DELETE", path).json() == [2]
    # The version that came back has replaced the one before.
    assert client.ask("DELETE", f"{path}?permanent=true").json() == [2]
    assert subject not in client.get("/subjects?deleted=true")


def test_what_is_referred_to_stays(client: Client, subject: str) -> None:
    base, user = f"{subject}-base", f"{subject}-user"
    client.register(base, record("a", name="Base"))
    text = '{"type":"record","name":"User","fields":[{"name":"base","type":"Base"}]}'
    registered = client.register(user, text, references=[{"name": "Base", "subject": base, "version": 1}])
    assert client.get(f"/subjects/{base}/versions/1/referencedby") == [registered["id"]]
    refused = f"One or more references exist to the schema {{magic=1,keytype=SCHEMA,subject={base},version=1}}."
    assert client.error("DELETE", f"/subjects/{base}/versions/1") == (422, 42206, refused)
    assert client.error("DELETE", f"/subjects/{base}")[1] == 42206
    client.ask("DELETE", f"/subjects/{user}")
    assert client.get(f"/subjects/{base}/versions/1/referencedby") == []
    assert client.ask("DELETE", f"/subjects/{base}").json() == [1]


# --- configs, modes, contexts ---


def test_a_config_has_keys_that_are_set_cleared_or_left_alone(client: Client, subject: str) -> None:
    path = f"/config/{subject}"
    not_set = f"Subject '{subject}' does not have subject-level compatibility configured"
    assert client.error("GET", path) == (404, 40408, not_set)
    assert client.get(f"{path}?defaultToGlobal=true") == {"compatibilityLevel": "BACKWARD"}
    assert client.ask("PUT", path, {"compatibility": "full", "normalize": True}).json() == {
        "compatibility": "FULL",
        "normalize": True,
    }
    assert client.ask("PUT", path, {"normalize": None, "alias": "x"}).json() == {"compatibility": "FULL", "alias": "x"}
    assert client.get(path) == {"compatibilityLevel": "FULL", "alias": "x"}
    assert client.ask("DELETE", path).json() == {"compatibilityLevel": "FULL", "alias": "x"}
    assert client.error("DELETE", path)[1] == 40401
    assert client.error("PUT", path, {"compatibility": "SIDEWARD"})[:2] == (422, 42203)


def test_a_mode_forbids_writes(client: Client, subject: str) -> None:
    path = f"/mode/{subject}"
    assert client.error("GET", path)[:2] == (404, 40409)
    assert client.get(f"{path}?defaultToGlobal=true") == {"mode": "READWRITE"}
    assert client.ask("PUT", path, {"mode": "READONLY"}).json() == {"mode": "READONLY"}
    refused = f"Subject {subject} in context . is in read-only mode"
    assert client.error("POST", f"/subjects/{subject}/versions", {"schema": record("a")}) == (422, 42205, refused)
    assert client.ask("DELETE", path).json() == {"mode": "READONLY"}
    assert client.error("PUT", path, {"mode": "SIDEWARD"})[:2] == (422, 42204)
    client.register(subject, record("a"))
    assert client.error("PUT", path, {"mode": "IMPORT"})[:2] == (422, 42205)
    assert client.ask("PUT", f"{path}?force=true", {"mode": "IMPORT"}).status_code == 200
    registered = client.register(subject, record("b"), id=1_000_000, version=7)
    assert (registered["id"], client.get(f"/subjects/{subject}/versions")) == (1_000_000, [1, 7])


def test_contexts_are_worlds_of_their_own(client: Client, subject: str) -> None:
    context = f".{subject}"
    inside = f"/contexts/{context}"
    registered = client.ask("POST", f"{inside}/subjects/a%2Fb/versions", {"schema": record("a")}).json()
    assert registered["id"] == 1
    assert client.get(f"{inside}/subjects") == [f":{context}:a/b"]
    assert client.get(f"{inside}/schemas/ids/1")["guid"] == registered["guid"]
    assert client.get(f"/schemas/ids/1?subject=:{context}:")["guid"] == registered["guid"]
    assert client.get(f"/subjects/:{context}:a%2Fb/versions") == [1]
    assert context in client.get("/contexts")
    assert f":{context}:a/b" not in client.get("/subjects?subjectPrefix=")
    client.ask("PUT", f"{inside}/config", {"compatibility": "NONE"})
    assert client.get(f"/config/:{context}:a%2Fb?defaultToGlobal=true") == {"compatibilityLevel": "NONE"}
    assert client.error("DELETE", f"/contexts/{context}")[:2] == (422, 42211)
    for permanent in ("false", "true"):
        client.ask("DELETE", f"{inside}/subjects/a%2Fb?permanent={permanent}")
    assert client.ask("DELETE", f"/contexts/{context}").status_code == 204
    assert context not in client.get("/contexts")
    assert client.ask("GET", "/contexts/a:b/subjects").status_code == 400


# --- compatibility ---


def test_whether_a_schema_fits_and_why_not(client: Client, subject: str) -> None:
    client.register(subject, record("a"))
    path = f"/compatibility/subjects/{subject}/versions"
    for version in ("/latest", "/1", "/-1", ""):
        assert client.ask("POST", f"{path}{version}", {"schema": record("a", "b?")}).json() == {"is_compatible": True}
        assert client.ask("POST", f"{path}{version}", {"schema": record("a", "b")}).json() == {"is_compatible": False}
    result = client.ask("POST", f"{path}/latest?verbose=true", {"schema": record("a", "b")}).json()
    assert result["is_compatible"] is False
    assert "READER_FIELD_MISSING_DEFAULT_VALUE" in result["messages"][0]
    assert result["messages"][1] == "{oldSchemaVersion: 1}"
    assert result["messages"][-1] == "{validateFields: 'false', compatibility: 'BACKWARD'}"
    fits = client.ask("POST", f"{path}/latest?verbose=true", {"schema": record("a")}).json()
    assert fits in ({"is_compatible": True}, {"is_compatible": True, "messages": []})
    assert client.error("POST", f"{path}/9", {"schema": record("a")})[:2] == (404, 40402)
    assert client.error("POST", f"{path}/latest", {"schema": "{}"})[:2] == (422, 42201)
    broken = client.ask("POST", f"{path}/latest?verbose=true", {"schema": "{}"})
    assert (broken.status_code, broken.json()["is_compatible"]) == (200, False)
    status, code, message = client.error("POST", f"/subjects/{subject}/versions", {"schema": record("a", "b")})
    assert (status, code) == (409, 40901)
    assert message.startswith(f'Schema being registered is incompatible with an earlier schema for subject "{subject}"')
