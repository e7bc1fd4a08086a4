"""PLAIN: what is accepted, and that no failure says more than it may."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core_broker.protocol.principals import Principal
from core_broker.security.sasl.mechanism import Failure, Outcome, Success
from core_broker.security.sasl.plain import PlainServer, PlainUsers

USERS = PlainUsers({"alice": "secret", "grün": "pässword", "empty": ""})


def log_in(message: bytes) -> Outcome:
    return PlainServer(USERS).step(message)


@pytest.mark.parametrize("name", ["alice", ""])
def test_the_right_password_is_accepted(name: str) -> None:
    assert log_in(f"{name}\0alice\0secret".encode()) == Success(Principal("User", "alice"))


def test_names_and_passwords_are_unicode() -> None:
    assert log_in("\0grün\0pässword".encode()) == Success(Principal("User", "grün"))


def test_a_wrong_password_and_an_unknown_user_look_the_same() -> None:
    """CVE-2021-38153 is about the time that the comparison takes; here both compare digests of one length."""
    wrong, unknown = log_in(b"\0alice\0Secret"), log_in(b"\0bob\0secret")
    assert isinstance(wrong, Failure)
    assert isinstance(unknown, Failure)
    assert (wrong.reason, wrong.message) == (unknown.reason, unknown.message)


def test_a_user_cannot_act_for_another() -> None:
    """CVE-2017-12610"""
    outcome = log_in(b"admin\0alice\0secret")
    assert isinstance(outcome, Failure)
    assert "another user" in outcome.reason


def test_the_authorization_id_is_judged_after_the_password() -> None:
    outcome = log_in(b"admin\0alice\0wrong")
    assert isinstance(outcome, Failure)
    assert outcome.reason == "wrong password or no such user"


@pytest.mark.parametrize(
    ("message", "reason"),
    [
        (b"", "1 parts"),
        (b"\0alice", "2 parts"),
        (b"\0alice\0sec\0ret", "4 parts"),
        (b"\0\0secret", "user name is empty"),
        (b"\0alice\0", "password is empty"),
        (b"\0empty\0", "password is empty"),
        (b"\0\xff\xfe\0secret", "no such user"),
    ],
)
def test_an_incomplete_message_is_refused(message: bytes, reason: str) -> None:
    outcome = log_in(message)
    assert isinstance(outcome, Failure)
    assert reason in outcome.reason


def test_a_failure_never_contains_the_password() -> None:
    for message in (b"\0alice\0hunter2", b"admin\0alice\0hunter2", b"\0alice\0hunter2\0"):
        assert "hunter2" not in repr(log_in(message))


@given(st.binary(max_size=100))
def test_no_message_raises(data: bytes) -> None:
    assert isinstance(log_in(data), Failure)
