"""One registry and everything that a hostile client can send: refused in the envelope, in bounded time and memory."""

import json
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple, Self
from urllib.parse import quote

import httpx2
import psutil
import pytest

from tests.support.registry import RegistryProcess

LONGEST_S = 60.0
"""Real figures are below a second; machines that run tests are slow and shared, and what is not bounded takes hours."""
LONGEST_STALL_S = 30.0
GROWTH_MAX = 600 << 20

AVRO, JSON, PROTOBUF = "AVRO", "JSON", "PROTOBUF"
_PROTO = 'syntax = "proto3";\n'


class Hostile(NamedTuple):
    """One hostile schema, and the words of its refusal; none where a registry may take it."""

    name: str
    kind: str
    text: str
    refused: str | None = None


def avro_record(fields: int, **more: Any) -> str:
    return json.dumps(
        {"type": "record", "name": "R", "fields": [{"name": f"f{n}", "type": "int"} for n in range(fields)], **more}
    )


def avro_enum(symbols: int) -> str:
    return json.dumps({"type": "enum", "name": "E", "symbols": [f"s{n}" for n in range(symbols)]})


def avro_fields_of(kind: Any, count: int, *, letter: str = "f") -> str:
    fields = [{"name": f"{letter}{n}", "type": kind} for n in range(count)]
    return json.dumps({"type": "record", "name": "R", "fields": fields})


def avro_union(namespace: str) -> str:
    return json.dumps([{"type": "record", "name": f"{namespace}{n}.R", "fields": []} for n in range(2_000)])


def json_alternatives(sign: int) -> str:
    return json.dumps({"oneOf": [{"properties": {f"k{n}": {"const": sign * n}}} for n in range(2_000)]})


def json_values(sign: int) -> str:
    return json.dumps({"enum": [{"a": [sign * n]} for n in range(6_000)]})


def json_chain(length: int) -> str:
    definitions: dict[str, Any] = {f"d{n}": {"$ref": f"#/definitions/d{n + 1}"} for n in range(length)}
    return json.dumps({"definitions": definitions | {f"d{length}": {}}})


def proto_messages(count: int, letter: str = "M") -> str:
    return _PROTO + "".join(f"message {letter}{n}{{}}" for n in range(count))


def proto_fields(count: int) -> str:
    return f"{_PROTO}message A{{{''.join(f'int32 f{n}={n};' for n in range(1, count))}}}"


def exploding(last: str) -> str:
    definitions: dict[str, Any] = {f"d{n}": {"oneOf": [{"$ref": f"#/definitions/d{n + 1}"}] * 2} for n in range(60)}
    return json.dumps({"definitions": definitions | {"d60": {"type": last}}, "$ref": "#/definitions/d0"})


def proto_option(value: str) -> str:
    extension = "message O { O o = 1; string s = 2; } extend google.protobuf.MessageOptions { repeated O x = 50000; }"
    return f'{_PROTO}import "google/protobuf/descriptor.proto"; {extension} message A {{ {value} }}'


SCHEMAS = [
    Hostile("deep arrays", AVRO, '{"type":"array","items":' * 40_000 + '"int"' + "}" * 40_000, "nested too deeply"),
    Hostile("a megabyte of symbols", AVRO, avro_enum(90_000), "more than 20000 values"),
    Hostile("as many symbols as may be", AVRO, avro_enum(19_000)),
    Hostile("as many fields as may be", AVRO, avro_record(6_500)),
    Hostile("a record of itself", AVRO, avro_fields_of("R", 6_500)),
    Hostile("a record by itself only", AVRO, '{"type":"record","name":"R","fields":[{"name":"a","type":"S"}]}', "S"),
    Hostile("a long default", AVRO, avro_record(1, doc="x" * 900_000)),
    Hostile("half a surrogate pair", AVRO, avro_record(1, doc="x").replace('"x"', '"\\ud800"'), "surrogate"),
    Hostile("a NUL", AVRO, avro_record(1, doc="x").replace("x", "\0"), "NUL"),
    Hostile("a long number", AVRO, '{"type":"fixed","name":"F","size":' + "9" * 900_000 + "}", "too many digits"),
    Hostile("deep negations", JSON, '{"not":' * 100_000 + "{}" + "}" * 100_000, "nested deeper than"),
    Hostile("a megabyte of values", JSON, json.dumps({"enum": list(range(120_000))}), "more than 20000 values"),
    Hostile(
        "a key twice among very many",
        JSON,
        "{" + ",".join(f'"{n}":0' for n in range(95_000)) + ',"9":1}',
        "20000 values",
    ),
    Hostile("alternatives that explode", JSON, exploding("string")),
    Hostile("a reference to itself", JSON, '{"$ref":"#"}', "form a loop"),
    Hostile("references in a circle", JSON, '{"not":{"$ref":"#/if"},"if":{"$ref":"#/not"}}', "form a loop"),
    Hostile(
        "very many references to one",
        JSON,
        json.dumps({"allOf": [{"$ref": "#/allOf/0"}] * 9_000}),
        "form a loop",
    ),
    Hostile("a chain of references", JSON, json_chain(5_000)),
    Hostile("a pattern that explodes", JSON, json.dumps({"pattern": "(a+)+$", "default": "a" * 100_000})),
    Hostile(
        "a pattern that explodes with a look ahead",
        JSON,
        json.dumps({"pattern": "(?=a)(a+)+$", "default": "a" * 10_000 + "b"}),
    ),
    Hostile("a pattern of huge repetitions", JSON, json.dumps({"pattern": "((a{1,1000}){1,1000}){1,1000}"})),
    Hostile(
        "very many costly patterns",
        JSON,
        json.dumps({"patternProperties": {rf"\p{{L}}{{1,100}}{n}": {} for n in range(5_000)}}),
        "more than 500",
    ),
    Hostile(
        "very long patterns",
        JSON,
        json.dumps({"allOf": [{"pattern": f"(?={n})" + "[a-z]{1,5}|" * 800} for n in range(100)]}),
        "100000 characters",
    ),
    Hostile("a number beyond a double", JSON, '{"maximum":1e400}', "does not fit a double"),
    Hostile("a number of a million digits", JSON, '{"maximum":' + "9" * 900_000 + "}", "too many digits"),
    Hostile("deep messages", PROTOBUF, _PROTO + "message A{" * 5_000 + "}" * 5_000, "nested deeper than"),
    Hostile("very many messages", PROTOBUF, proto_messages(60_000), "more than 20000"),
    Hostile("as many fields as may be", PROTOBUF, proto_fields(5_000)),
    Hostile(
        "options inside of options", PROTOBUF, proto_option("option (x) = " + "{o " * 98 + '{s:"a"}' + "}" * 98 + ";")
    ),
    Hostile("very many options", PROTOBUF, proto_option('option (x) = {s:"a"};' * 30_000), "more than 20000"),
    Hostile("very long options", PROTOBUF, proto_option('option (x) = {s:"' + "\\000" * 200_000 + '"};')),
    Hostile("comments inside of comments", PROTOBUF, "/*" * 300_000 + _PROTO, ""),
    Hostile(
        "a field with a number of a million digits",
        PROTOBUF,
        _PROTO + "message A{int32 a=" + "9" * 900_000 + ";}",
        "out of range",
    ),
    Hostile("too long a text", PROTOBUF, _PROTO + "//" + "x" * 1_100_000, "too large"),
]


@pytest.fixture(scope="module")
def victim(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RegistryProcess]:
    with RegistryProcess(tmp_path_factory.mktemp("registry")) as registry:
        registry.register("s")
        yield registry
        assert registry.is_running, registry.log_tail()
        assert "Traceback" not in registry.log_text()


@pytest.fixture
def client(victim: RegistryProcess) -> Iterator[httpx2.Client]:
    with httpx2.Client(base_url=victim.url, timeout=90) as client:
        yield client


class Bystander:
    """Somebody who asks for something simple all the time; notes the longest wait."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._ask)
        self.longest_s = 0.0

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *failure: object) -> None:
        self._is_over.set()
        self._thread.join()

    def _ask(self) -> None:
        with httpx2.Client(base_url=self._url, timeout=60) as client:
            while not self._is_over.wait(0.05):
                started = time.perf_counter()
                assert client.get("/subjects?limit=1").status_code == 200
                self.longest_s = max(self.longest_s, time.perf_counter() - started)


def answered(client: httpx2.Client, method: str, path: str, body: Any = None) -> httpx2.Response:
    """The response, if it came in time, in the envelope, and without making other clients wait."""
    content = None if body is None else json.dumps(body)  # httpx2 would refuse to write half a surrogate pair
    with Bystander(str(client.base_url)) as bystander:
        started = time.perf_counter()
        answer = client.request(method, path, content=content, headers={"content-type": "application/json"})
        took = time.perf_counter() - started
    assert answer.status_code < 500, answer.text[:500]
    if answer.status_code >= 400:
        assert answer.json().keys() == {"error_code", "message"}, answer.text[:500]
    assert took < LONGEST_S
    assert bystander.longest_s < LONGEST_STALL_S
    return answer


@pytest.mark.parametrize("schema", SCHEMAS, ids=lambda schema: f"{schema.kind}: {schema.name}")
def test_a_hostile_schema_is_answered_in_bounded_time(schema: Hostile, client: httpx2.Client) -> None:
    body = {"schema": schema.text, "schemaType": schema.kind}
    subject = quote(f"{schema.kind} {schema.name}")
    answer = answered(client, "POST", f"/subjects/{subject}/versions", body)
    if schema.refused is None:
        assert answer.status_code == 200, answer.text[:500]
    else:
        assert answer.status_code == 422
        assert schema.refused in answer.json()["message"]
    for path in (f"/subjects/{subject}", f"/compatibility/subjects/{subject}/versions/latest?verbose=true"):
        assert answered(client, "POST", path, body).status_code in (200, 404, 422)


@pytest.mark.parametrize(
    ("kind", "old", "new"),
    [
        (JSON, exploding("string"), exploding("number")),
        (JSON, json_alternatives(1), json_alternatives(-1)),
        (JSON, json_values(1), json_values(-1)),
        (AVRO, avro_union("a"), avro_union("b")),
        (AVRO, avro_fields_of(["null", "R"], 3_000), avro_fields_of(["null", "R"], 3_000, letter="g")),
        (PROTOBUF, proto_messages(8_000), proto_messages(8_000, "N")),
    ],
)
def test_two_schemas_that_are_hard_to_compare_are_compared_in_bounded_time(
    kind: str, old: str, new: str, client: httpx2.Client, name: str
) -> None:
    client.post(f"/subjects/{name}/versions", json={"schema": old, "schemaType": kind}).raise_for_status()
    path = f"/compatibility/subjects/{name}/versions?verbose=true"
    answer = answered(client, "POST", path, {"schema": new, "schemaType": kind})
    assert answer.status_code == 200


@pytest.fixture
def trap() -> Iterator[socket.socket]:
    """Listens, and is never to be asked."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        listening.settimeout(0.3)
        yield listening


def test_nothing_is_fetched(victim: RegistryProcess, client: httpx2.Client, trap: socket.socket) -> None:
    address = f"127.0.0.1:{trap.getsockname()[1]}"
    targets = (
        f"http://{address}/x.json",
        f"https://{address}/x",
        f"ftp://{address}/x",
        "file:///etc/passwd",
        "/etc/passwd",
        "../../../etc/passwd",
        "/proc/self/environ",
        "/proc/self/fd/3",
    )
    for target in targets:
        texts = [
            (JSON, json.dumps({"$ref": target})),
            (JSON, json.dumps({"$id": target, "$ref": "other"})),
            (JSON, json.dumps({"$schema": target, "$ref": f"{target}#/a"})),
            (PROTOBUF, f'{_PROTO}import "{target}"; message A {{}}'),
            (AVRO, avro_fields_of(target, 1)),
        ]
        for kind, text in texts:
            answer = answered(client, "POST", "/subjects/fetch/versions", {"schema": text, "schemaType": kind})
            assert answer.status_code == 422, text
            assert "root:" not in answer.text
    with pytest.raises(TimeoutError):
        while True:  # clients of other tests may look for a server that had this port before
            visitor, (_, port) = trap.accept()
            with visitor:
                assert port not in {one.laddr.port for one in psutil.Process(victim.pid).net_connections("tcp")}


@pytest.mark.parametrize("kind", [AVRO, JSON, PROTOBUF])
def test_a_long_chain_of_references_ends(kind: str, client: httpx2.Client, name: str) -> None:
    for number in range(60):
        before = number - 1
        inner = [] if number == 0 else [{"name": f"R{before}", "subject": f"{name}-{before}", "version": 1}]
        texts = {
            AVRO: avro_fields_of(f"R{before}", len(inner)).replace('"R"', f'"R{number}"'),
            JSON: json.dumps({"properties": {"a": {"$ref": f"R{before}"}}} if inner else {}),
            PROTOBUF: _PROTO
            + (f'import "R{before}"; message R{number} {{ R{before} a = 1; }}' if inner else "message R0 {}"),
        }
        body = {"schema": texts[kind], "schemaType": kind, "references": inner}
        client.post(f"/subjects/{name}-{number}/versions", json=body).raise_for_status()
    for style in ("resolved", "serialized", "nonsense"):
        path = f"/subjects/{name}-59/versions/1?format={style}"
        assert answered(client, "GET", path).status_code == 200
    too_many = [{"name": f"R{n}", "subject": f"{name}-0", "version": 1} for n in range(4_000)]
    body = {"schema": "x", "schemaType": kind, "references": too_many}
    refusal = answered(client, "POST", f"/subjects/{name}/versions", body)
    assert "4000 references, but at most 1000 are allowed" in refusal.json()["message"]


BODIES: list[tuple[str, str, Any]] = [
    (
        "POST",
        "/subjects/s/versions",
        {"schema": '"int"', "metadata": {"properties": {str(n): "" for n in range(100_000)}}},
    ),
    ("POST", "/subjects/s/versions", {"schema": '"int"', "metadata": {"tags": {str(n): ["x"] for n in range(9_000)}}}),
    (
        "POST",
        "/subjects/s/versions",
        {"schema": '"int"', "ruleSet": {"domainRules": [{"name": f"r{n}", "type": "CEL"} for n in range(6_000)]}},
    ),
    (
        "POST",
        "/subjects/s/versions",
        {"schema": '"int"', "ruleSet": {"domainRules": [{"name": "\ud800", "type": "\ud800"}]}},
    ),
    ("POST", "/subjects/s/versions", {"schema": '"int"', "metadata": {"properties": {"x": "y" * 10_000_000}}}),
    ("POST", "/subjects/s/versions", {"schema": '"int"', "references": [1] * 1_000_000}),
    ("POST", "/subjects/s/versions", {"schema": '"int"', "references": [1] * 15_000}),
    ("POST", "/subjects/s/versions", {"schema": '"int"', "id": 2**80, "version": -(2**80)}),
    (
        "POST",
        "/subjects/s/versions",
        {
            "schema": avro_record(6_000),
            "schemaTagsToAdd": [
                {"schemaEntity": {"entityPath": f"R.f{n}", "entityType": "sr_field"}, "tags": ["x"]}
                for n in range(3_000)
            ],
        },
    ),
    (
        "POST",
        "/subjects/s/versions/1/tags",
        {"tagsToAdd": [{"schemaEntity": {"entityPath": "." * 100_000, "entityType": "sr_field"}, "tags": ["x"]}]},
    ),
    ("PUT", "/config/s", {"compatibility": "x" * 1_000_000, "alias": "\0", "normalize": []}),
    ("PUT", "/config/s", {"overrideMetadata": {"properties": {str(n): "x" for n in range(15_000)}}}),
    ("PUT", "/config", [[[[]]]]),
    ("PUT", "/mode/s", {"mode": {"mode": "READWRITE"}}),
    ("PUT", "/mode", None),
    ("POST", "/dek-registry/v1/keks", {"name": "x" * 100_000, "kmsType": "\0", "kmsKeyId": 5}),
    (
        "POST",
        "/dek-registry/v1/keks",
        {"name": "k", "kmsType": "x", "kmsKeyId": "x", "kmsProps": {str(n): "x" for n in range(15_000)}},
    ),
    ("POST", "/dek-registry/v1/keks/k/deks", {"subject": "s", "version": 2**80, "encryptedKeyMaterial": "="}),
    (
        "POST",
        "/associations",
        {"resourceName": "\0", "resourceNamespace": "x" * 100_000, "resourceId": "x", "associations": [{}] * 5_000},
    ),
    ("POST", "/associations:batchMutate", {"requests": [{"operations": []}] * 9_000}),
    ("POST", "/associations:batchGet", {"queries": [{"resourceId": "x"}] * 9_000}),
]


@pytest.mark.parametrize(("method", "path", "body"), BODIES, ids=range(len(BODIES)))
def test_a_hostile_body_is_answered_in_bounded_time(method: str, path: str, body: Any, client: httpx2.Client) -> None:
    assert len(answered(client, method, path, body).content) < 5_000_000


_NAMES = (
    "%00",
    "%FF",
    "..",
    "%2e%2e%2f",
    quote("é" * 700),
    "a" * 10_000,
    quote(":.ctx:"),
    quote(":.:x"),
    quote(":*:x"),
    quote(":.__GLOBAL:x"),
    quote(f":.{'c' * 600}:x"),
    "%01",
    "%C2%85",
    "%ED%A0%80",
    "%",
    "%zz",
    "a%2Fb",
    quote(":.a\0:x"),
    "9" * 30,
    "-1",
    "1e5",
    quote("٣"),
)
_PATHS = (
    "GET /subjects/@/versions",
    "GET /subjects/@/versions/1/schema",
    "GET /subjects/s/versions/@",
    "POST /subjects/@",
    "POST /subjects/@/versions",
    "DELETE /subjects/@",
    "GET /config/@",
    "PUT /config/@",
    "GET /mode/@",
    "PUT /mode/@",
    "GET /contexts/@/subjects",
    "DELETE /contexts/@",
    "GET /schemas/ids/@",
    "GET /schemas/ids/1?subject=@",
    "GET /schemas/guids/@",
    "GET /subjects?subjectPrefix=@",
    "GET /subjects?offset=@",
    "GET /schemas?limit=@",
    "GET /dek-registry/v1/keks/@",
    "GET /dek-registry/v1/keks/k/deks/@/versions/@",
    "GET /associations/subjects/@",
    "GET /associations/resources/@/@",
    "POST /compatibility/subjects/@/versions/@",
)


@pytest.mark.parametrize("path", _PATHS)
def test_hostile_names_are_answered_in_the_envelope(path: str, client: httpx2.Client) -> None:
    method, _, template = path.partition(" ")
    body = {"schema": '"string"', "compatibility": "NONE", "mode": "READWRITE"} if method in ("POST", "PUT") else None
    for name in _NAMES:
        answer = client.request(method, template.replace("@", name), json=body)
        assert answer.status_code < 500, (name, answer.text)
        if answer.status_code >= 400:
            assert answer.json().keys() == {"error_code", "message"}, name


def test_memory_does_not_grow_with_each_hostile_schema(tmp_path: Path) -> None:
    heavy = [schema for schema in SCHEMAS if schema.refused is None]
    with RegistryProcess(tmp_path) as registry, httpx2.Client(base_url=registry.url, timeout=60) as client:
        process = psutil.Process(registry.pid)

        def send_all(round_number: int) -> int:
            for number, schema in enumerate(heavy):
                body = {"schema": schema.text, "schemaType": schema.kind}
                client.post(f"/subjects/{round_number}-{number}/versions", json=body).raise_for_status()
            used: int = process.memory_info().rss
            return used

        before = process.memory_info().rss
        first = send_all(0)
        later = [send_all(number) for number in range(1, 4)][-1]
    assert first - before < GROWTH_MAX
    assert later - first < GROWTH_MAX / 4, [used >> 20 for used in (before, first, later)]


def test_hundreds_of_idle_connections_do_not_get_in_the_way(victim: RegistryProcess, client: httpx2.Client) -> None:
    idle = [socket.create_connection(("127.0.0.1", victim.port)) for _ in range(500)]
    try:
        assert answered(client, "GET", "/subjects").status_code == 200
    finally:
        for connection in idle:
            connection.close()
