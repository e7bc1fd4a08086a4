import pytest

from core_broker.protocol.scram_client import Scram, ScramError

NONCE = "rOprNGfwEbeRWgbNEkqO"
SERVER_FIRST = b"r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"


def started() -> Scram:
    """The attempt of the example in RFC 7677."""
    scram = Scram("sha256", "user", "pencil", nonce=NONCE)
    assert scram.first() == b"n,,n=user,r=" + NONCE.encode()
    return scram


def test_proof_is_that_of_the_standard() -> None:
    scram = started()
    assert scram.proof(SERVER_FIRST) == (
        b"c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
    )
    scram.check_end(b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=")


@pytest.mark.parametrize("end", [b"v=7rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=", b"v=", b"e=other-error", b""])
def test_server_must_know_the_password_too(end: bytes) -> None:
    scram = started()
    scram.proof(SERVER_FIRST)
    with pytest.raises(ScramError):
        scram.check_end(end)


@pytest.mark.parametrize(
    "answer",
    [
        SERVER_FIRST.replace(b"r=r", b"r=x"),
        SERVER_FIRST.replace(b"4096", b"0"),
        SERVER_FIRST.replace(b"4096", b"999999999"),
        SERVER_FIRST.replace(b"4096", b"many"),
        SERVER_FIRST.replace(b"s=", b"t="),
        SERVER_FIRST.replace(b"%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0", b""),
        SERVER_FIRST.replace(b"W22Z", b"W2*Z"),
        b"",
        b"\xff\xfe",
    ],
)
def test_answer_that_is_not_of_this_attempt_is_refused(answer: bytes) -> None:
    with pytest.raises(ScramError):
        started().proof(answer)


def test_names_are_escaped() -> None:
    assert Scram("sha512", "a=b,c", "x", nonce="n").first() == b"n,,n=a=3Db=2Cc,r=n"


def test_a_server_cannot_ask_for_more_work_than_allowed() -> None:
    """CVE-2026-10143"""
    scram = Scram("sha256", "user", "pencil", nonce=NONCE, iterations=range(4096, 16385))
    scram.first()
    for iterations in (b"4095", b"16385"):
        with pytest.raises(ScramError, match="iteration count"):
            scram.proof(SERVER_FIRST.replace(b"4096", iterations))
