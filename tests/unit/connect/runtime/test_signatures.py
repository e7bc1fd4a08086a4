"""What a worker says about a request that it forwards, and who is believed."""

import pytest

from connect.runtime.signatures import Signatures, digest, new_session_key
from core_broker.service.clock import ManualClock
from core_broker.web_access.callers import BearerCredentials, Caller, caller_named
from core_broker.web_access.errors import Forbidden, Unavailable

CALLER = caller_named("User:al:ice", host="10.0.0.7")


class Workers:
    """Two workers with the same keys."""

    def __init__(self) -> None:
        self.clock = ManualClock(1_700_000_000_000)
        self.keys = [new_session_key(self.clock)]
        self.one = Signatures(lambda: self.keys, clock=self.clock)
        self.other = Signatures(lambda: self.keys, clock=self.clock)

    def signed(self, *, method: str = "PUT", target: str = "/connectors/a/config?forward=true") -> str:
        header = self.one.sign(CALLER, method=method, target=target, body=b"{}")
        assert header is not None
        return header

    def check(self, header: str, *, method: str = "PUT", target: str = "/connectors/a/config?forward=true") -> Caller:
        return self.other.check(header, method=method, target=target).caller


def test_the_caller_is_the_one_that_was_signed() -> None:
    workers = Workers()
    assert workers.check(workers.signed()) == CALLER
    assert "al:ice" not in workers.signed()


def test_the_body_belongs_to_the_signature() -> None:
    workers = Workers()
    statement = workers.other.check(workers.signed(), method="PUT", target="/connectors/a/config?forward=true")
    assert statement.body == digest(b"{}") != digest(b"[]")


@pytest.mark.parametrize("change", [{"method": "DELETE"}, {"target": "/connectors/b/config?forward=true"}])
def test_a_signature_is_for_one_request(change: dict[str, str]) -> None:
    workers = Workers()
    with pytest.raises(Forbidden, match="another request"):
        workers.check(workers.signed(), **change)


def test_a_signature_is_used_once() -> None:
    workers = Workers()
    header = workers.signed()
    workers.check(header)
    with pytest.raises(Forbidden, match="used before"):
        workers.check(header)


@pytest.mark.parametrize("milliseconds", [-120_001, 120_001])
def test_a_signature_is_valid_for_a_short_time(milliseconds: int) -> None:
    workers = Workers()
    header = workers.signed()
    workers.clock.jump(milliseconds)
    with pytest.raises(Forbidden, match="clocks"):
        workers.check(header)


def test_the_former_key_is_still_accepted_and_others_are_not() -> None:
    workers = Workers()
    header, last = workers.signed(), workers.signed()
    workers.keys.insert(0, new_session_key())
    workers.check(header)
    workers.keys[:] = [new_session_key(), new_session_key()]
    with pytest.raises(Forbidden, match="wrong"):
        workers.check(last)


@pytest.mark.parametrize("header", ["", ".", "a.b", "é.é", "\x00.\xff"])
def test_what_is_no_signature_is_refused(header: str) -> None:
    with pytest.raises(Forbidden, match="wrong"):
        Workers().check(header)


def test_a_changed_statement_is_refused() -> None:
    workers = Workers()
    text, _, signature = workers.signed().partition(".")
    changed = text[:-6] + ("A" if text[-6] != "A" else "B") + text[-5:]
    with pytest.raises(Forbidden, match="wrong"):
        workers.check(f"{changed}.{signature}")


def test_without_a_key_nothing_is_signed_or_believed() -> None:
    workers = Workers()
    header = workers.signed()
    workers.keys.clear()
    assert workers.one.sign(CALLER, method="GET", target="/", body=b"") is None
    with pytest.raises(Unavailable):
        workers.check(header)


def test_a_key_is_not_shown() -> None:
    key = new_session_key()
    assert key.key not in repr(key)
    assert key.key not in str(key.__rich_repr__())


def test_credentials_are_not_signed() -> None:
    caller = Caller(CALLER.principal, CALLER.host, BearerCredentials("a-token", 1))
    workers = Workers()
    header = workers.one.sign(caller, method="GET", target="/", body=b"")
    assert header is not None
    assert workers.check(header, method="GET", target="/").credentials is None
