"""What a mechanism says."""

from core_broker.security.sasl.mechanism import Failure, Mechanism, Outcome


class _Any(Mechanism):
    @property
    def name(self) -> str:
        return "ANY"

    def step(self, data: bytes) -> Outcome:
        return Failure("never", "alice", "for the client")


def test_a_failure_reads_as_its_reason() -> None:
    assert str(_Any().step(b"")) == "never"


def test_mechanisms_are_quick_unless_they_say_otherwise() -> None:
    assert not _Any().is_slow(b"")
