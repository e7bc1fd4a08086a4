"""The audit log: what it holds, what it must never hold, and that it is bounded."""

import json
import logging
import stat
import typing
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from core_broker.errors import ErrorCode
from core_broker.handlers.table import BY_KEY
from core_broker.protocol.fields import Message
from core_broker.protocol.messages import create_topics, incremental_alter_configs
from core_broker.protocol.principals import Principal
from core_broker.security.acls import AclEntry
from core_broker.security.audit import AuditFile, AuditLog, Json, audit_log_of, to_service_log
from core_broker.security.authorizer import Decision, Denial
from core_broker.security.operations import Operation, ResourceType
from core_broker.service.clock import ManualClock
from core_broker.settings.authorization import AuditSettings

ALICE = Principal("User", "alice")
HOST = "10.0.0.7"
_NAMED_BY_A_SECRET = ("RenewDelegationToken", "ExpireDelegationToken")
CHANGES = [api for api in BY_KEY.values() if api.is_change]


class Events(list[dict[str, Any]]):
    """A sink that keeps what it gets."""

    def __call__(self, event: typing.Mapping[str, Json]) -> None:
        self.append(dict(event))


@pytest.fixture
def events() -> Events:
    return Events()


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(1_700_000_000_000)


@pytest.fixture
def audit(clock: ManualClock, events: Events) -> AuditLog:
    return AuditLog(clock, events, events_per_second_max=8)


def denial(
    name: str | None = "orders", *, principal: Principal = ALICE, host: str = HOST, rule: AclEntry | None = None
) -> Denial:
    decision = Decision(is_allowed=False, rule=rule, reason="a reason")
    return Denial(principal, host, Operation.READ, ResourceType.TOPIC, name, "Fetch", decision)


def created(*codes: int) -> create_topics.CreateTopicsResponse:
    return create_topics.CreateTopicsResponse(
        topics=[create_topics.CreatableTopicResult(f"t-{code}", error_code=code) for code in codes]
    )


CREATION = create_topics.CreateTopicsRequest(
    [create_topics.CreatableTopic("orders", 3, 2, configs=[create_topics.CreatableTopicConfig("retention.ms", "7")])]
)

# -- what is written ---------------------------------------------------------------------------------------------------


def test_denial_says_who_was_refused_what_and_why(audit: AuditLog, events: Events) -> None:
    audit.denied(denial(rule=AclEntry(2, "ord", 4, "User:*", "*", 3, 2)))
    audit.denied(denial(None))
    assert events[0] == {
        "time": "2023-11-14T22:13:20.000+00:00",
        "event": "denied",
        "principal": "User:alice",
        "host": HOST,
        "api": "Fetch",
        "operation": "READ",
        "resource": "TOPIC:orders",
        "reason": "a reason",
        "rule": "DENY User:* from *: READ TOPIC:PREFIXED:ord",
    }
    assert (events[1]["resource"], events[1]["rule"]) == ("TOPIC:any", None)


@pytest.mark.parametrize(
    ("codes", "outcome", "errors"),
    [
        ([0, 0], "ok", []),
        ([0, 36], "partly failed", ["TOPIC_ALREADY_EXISTS"]),
        ([36, 36], "failed", ["TOPIC_ALREADY_EXISTS"]),
        ([29, 0], "partly failed", ["TOPIC_AUTHORIZATION_FAILED"]),
    ],
)
def test_change_says_what_was_changed_and_what_became_of_it(
    audit: AuditLog, events: Events, codes: list[int], outcome: str, errors: list[str]
) -> None:
    audit.changed(ALICE, HOST, "CreateTopics", CREATION, created(*codes))
    (event,) = events
    assert (event["event"], event["outcome"], event["errors"]) == ("changed", outcome, errors)
    assert event["request"] == {
        "topics": [
            {"name": "orders", "num_partitions": 3, "replication_factor": 2, "configs": [{"name": "retention.ms"}]}
        ]
    }


def test_change_that_was_refused_as_a_whole_is_only_a_denial(audit: AuditLog, events: Events) -> None:
    audit.changed(ALICE, HOST, "CreateTopics", CREATION, created(29, 31))
    assert events == []


# -- secrets -----------------------------------------------------------------------------------------------------------


def test_values_of_configs_are_never_written(audit: AuditLog, events: Events) -> None:
    wire = incremental_alter_configs
    config = wire.AlterableConfig("listener.name.a.ssl.keystore.key", 0, "SECRET")
    request = wire.IncrementalAlterConfigsRequest([wire.AlterConfigsResource(4, "1", [config])])
    audit.changed(ALICE, HOST, "IncrementalAlterConfigs", request, wire.IncrementalAlterConfigsResponse())
    assert "SECRET" not in json.dumps(events)
    assert "listener.name.a.ssl.keystore.key" in json.dumps(events)


@pytest.mark.parametrize("api", CHANGES, ids=lambda api: api.name)
def test_every_change_is_written_without_what_could_be_a_secret(api: Any, audit: AuditLog, events: Events) -> None:
    """Fields that may hold values of configs, passwords, salts, keys or tokens are filled with a mark."""
    secret = ("value", "password", "salt", "hmac", "token", "credential", "secret")

    def fill(name: str) -> str | bytes | None:
        return "SECRET" if any(part in name for part in secret) else None

    request = _filled(api.request, fill)
    audit.changed(ALICE, HOST, api.name, request, api.response())
    assert "SECRET" not in json.dumps(events)
    assert b"SECRET".hex() not in json.dumps(events)
    assert events[0]["api"] == api.name
    assert events[0]["request"] or api.name in _NAMED_BY_A_SECRET, "nothing says what was changed"


def _filled(kind: type[msgspec.Struct], fill: Callable[[str], str | bytes | None]) -> Any:
    """A message with one element in every list, and text in every field of text."""
    values: dict[str, Any] = {}
    for field in msgspec.structs.fields(kind):
        element = next(_structs_in(field.type), None)
        texts = list(_leaves(field.type))
        if element is not None:
            values[field.name] = [_filled(element, fill)]
        elif str in texts or bytes in texts:
            text = fill(field.name) or f"some-{field.name}"
            value = text if str in texts else str(text).encode()
            values[field.name] = [value] if list in texts else value
    return kind(**values)


def _leaves(kind: Any) -> Iterator[Any]:
    yield typing.get_origin(kind) or kind
    for part in typing.get_args(kind):
        yield from _leaves(part)


def _structs_in(kind: Any) -> Iterator[type[msgspec.Struct]]:
    return (part for part in _leaves(kind) if isinstance(part, type) and issubclass(part, msgspec.Struct))


# -- bounds and forgery ------------------------------------------------------------------------------------------------


def test_names_from_outside_cannot_forge_lines(audit: AuditLog, events: Events, tmp_path: Path) -> None:
    file = AuditFile(tmp_path / "audit.log", bytes_max=10_000, files_max=2)
    log = AuditLog(ManualClock(), file)
    for sink in (audit, log):
        sink.denied(denial('x\n{"event": "changed"}\r\x1b[31m\u2028\u202e', principal=Principal("User", "a\nb")))
    file.close()
    assert events[0]["principal"] == r"User:a\nb"
    assert events[0]["resource"] == r'TOPIC:x\n{"event": "changed"}\r\x1b[31m\u2028\u202e'
    (line,) = (tmp_path / "audit.log").read_bytes().splitlines()
    assert line.isascii()
    assert json.loads(line)["event"] == "denied"


def test_long_names_and_long_lists_are_cut(audit: AuditLog, events: Events) -> None:
    request = create_topics.CreateTopicsRequest([create_topics.CreatableTopic("x" * 30_000, 1, 1) for _ in range(5000)])
    audit.changed(ALICE, HOST, "CreateTopics", request, created(0))
    topics = events[0]["request"]["topics"]
    assert len(topics) == 201
    assert topics[0]["name"] == "x" * 256 + "..."
    assert topics[-1] == "and 4800 more"


def test_events_of_one_source_leave_room_for_others_and_the_rest_is_counted(
    audit: AuditLog, events: Events, clock: ManualClock
) -> None:
    for _ in range(100):
        audit.denied(denial())
    audit.denied(denial(host="10.0.0.8"))
    assert [event["host"] for event in events] == [HOST, HOST, "10.0.0.8"]
    for number in range(100):
        audit.denied(denial(host=f"10.1.0.{number}"))
    assert len(events) == 8
    clock.advance(1000)
    audit.denied(denial())
    assert events[8] == {"time": events[8]["time"], "event": "denied (left out)", "count": 98 + 95}
    assert events[9]["host"] == HOST
    audit.close()
    assert len(events) == 10


def test_denials_do_not_take_the_room_of_changes(audit: AuditLog, events: Events) -> None:
    for number in range(100):
        audit.denied(denial(host=f"10.1.0.{number}"))
    audit.changed(ALICE, HOST, "CreateTopics", CREATION, created(0))
    assert events[-1]["event"] == "changed"


# -- the file ----------------------------------------------------------------------------------------------------------


def test_file_is_for_its_owner_and_is_continued(tmp_path: Path) -> None:
    path = tmp_path / "audit.log"
    for _ in range(2):
        file = AuditFile(path, bytes_max=10_000, files_max=2)
        file({"event": "denied"})
        file.close()
    assert path.read_text().splitlines() == ['{"event": "denied"}'] * 2
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


@pytest.mark.parametrize("files", [1, 2, 3])
def test_files_are_rotated_and_bounded(tmp_path: Path, files: int) -> None:
    file = AuditFile(tmp_path / "audit.log", bytes_max=100, files_max=files)
    for number in range(50):
        file({"number": number})
    file.close()
    found = sorted(tmp_path.iterdir())
    assert [path.name for path in found] == ["audit.log", *(f"audit.log.{n}" for n in range(1, files))]
    assert all(path.stat().st_size <= 100 for path in found)
    newest_first = [json.loads(line)["number"] for path in found for line in reversed(path.read_text().splitlines())]
    assert newest_first == list(range(49, 49 - len(newest_first), -1))


def test_file_that_cannot_be_written_is_refused_at_the_start(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="No such file"):
        AuditFile(tmp_path / "missing" / "audit.log", bytes_max=100, files_max=1)


def test_full_disk_is_reported_once_and_stops_nothing(caplog: pytest.LogCaptureFixture) -> None:
    file = AuditFile(Path("/dev/full"), bytes_max=1 << 40, files_max=2)
    for _ in range(3):
        file({"event": "denied"})
    file.close()
    assert file.left_out == 3
    assert [record.message for record in caplog.records] == ["audit log cannot be written; events are left out"]


# -- HTTP services -----------------------------------------------------------------------------------------------------


def test_refused_logins_and_changes_of_http_services_are_written_within_limits(clock: ManualClock) -> None:
    events: list[Any] = []
    audit = AuditLog(clock, events.append)
    audit.login_refused("mal\nlory" * 100, HOST, method="BASIC", reason="the password\nis wrong")
    audit.changed_over_http(ALICE, HOST, "CreateAcls", resources=[f"rule\n{number}" for number in range(500)])
    refused, changed = events
    assert refused["event"] == "login refused"
    assert refused["principal"].startswith("User:mal\\nlory")
    assert len(refused["principal"]) < 400
    assert refused["reason"] == "the password\\nis wrong"
    assert changed["request"]["resources"][0] == "rule\\n0"
    assert changed["request"]["resources"][-1] == "and 300 more"


def test_a_flood_of_refused_logins_is_left_out_and_counted(clock: ManualClock) -> None:
    events: list[Any] = []
    audit = AuditLog(clock, events.append, events_per_second_max=8)
    for number in range(100):
        audit.login_refused(f"user-{number}", HOST, method="BASIC", reason="wrong")
    audit.close()
    assert len(events) == 9
    assert events[-1]["count"] == 92


def test_the_audit_log_of_the_settings_is_open_while_it_is_used(tmp_path: Path, clock: ManualClock) -> None:
    path = tmp_path / "audit.log"
    with audit_log_of(AuditSettings(audit_log_file=str(path)), clock) as audit:
        audit.login_refused("alice", HOST, method="BASIC", reason="wrong")
    assert json.loads(path.read_text())["principal"] == "User:alice"


# -- the log of the service --------------------------------------------------------------------------------------------


def test_without_a_file_denials_are_in_the_log_of_the_service(
    clock: ManualClock, caplog: pytest.LogCaptureFixture
) -> None:
    audit = AuditLog(clock, to_service_log)
    caplog.set_level(logging.INFO)
    audit.denied(denial())
    audit.changed(ALICE, HOST, "CreateTopics", CREATION, created(0))
    (record,) = caplog.records
    assert (record.levelname, vars(record)["resource"]) == ("INFO", "TOPIC:orders")
    caplog.set_level(logging.DEBUG)
    audit.changed(ALICE, HOST, "CreateTopics", CREATION, created(ErrorCode.INVALID_CONFIG))
    assert vars(caplog.records[-1])["outcome"] == "failed"


def test_messages_with_a_secret_in_a_shown_field_would_be_noticed() -> None:
    """The check above can fail."""

    class Made(Message):
        name: str = ""

    assert _filled(Made, lambda _: "SECRET").name == "SECRET"
