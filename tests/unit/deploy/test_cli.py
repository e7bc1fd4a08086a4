import pytest

from deploy.cli import main


@pytest.fixture
def closed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Options that reach nobody, quickly."""
    monkeypatch.setenv("NO_COLOR", "1")
    return ["--bootstrap", "127.0.0.1:1", "--timeout", "0.3"]


@pytest.mark.parametrize(
    "command",
    [
        [],
        ["broker"],
        ["topic"],
        *(["topic", word] for word in ("create", "list", "describe", "alter", "delete", "produce", "consume")),
        ["group"],
        *(["group", word] for word in ("list", "describe", "seek", "delete")),
        ["cluster"],
        ["cluster", "info"],
    ],
    ids=lambda words: "-".join(words) or "caudal",
)
def test_every_command_has_help_and_the_leaves_teach_by_example(
    command: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*command, "--help"]) == 0
    text = capsys.readouterr().out
    assert "Usage" in text
    if len(command) == 2 or command == ["broker"]:
        assert "Example" in text


@pytest.mark.parametrize(
    "command",
    [["topic", "list"], ["topic", "describe", "x"], ["topic", "consume", "x"], ["group", "list"], ["cluster", "info"]],
    ids="-".join,
)
def test_unreachable_cluster_is_told_with_what_to_do_next(
    command: list[str], closed: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*command, *closed]) == 1
    error = capsys.readouterr().err
    assert "No answer from the cluster" in error
    assert "caudal broker" in error
    assert "Traceback" not in error


@pytest.mark.parametrize(
    "command,hint",
    [
        (["topic", "consume", "x", "--from", "sometime"], "is not a position"),
        (["topic", "consume", "x", "--format", "xml"], "is not a format"),
        (["topic", "alter", "x"], "say what to change"),
        (["group", "seek", "g", "--topic", "t", "--to", "never"], "is not a position"),
        (["topic", "create", "x", "--config", "novalue"], "must look like key=value"),
        (["topic", "produce", "x", "v", "--null"], "without value"),
        (["nonsense"], "No such command"),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, list) else "",
)
def test_wrong_usage_is_told_without_a_traceback(
    command: list[str], hint: str, closed: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*command, *(closed if len(command) > 1 else [])]) == 2
    error = capsys.readouterr().err
    assert hint in " ".join(error.replace("│", " ").split())
    assert "Traceback" not in error


def test_wrong_property_of_the_client_is_told(closed: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["topic", "list", *closed, "-X", "no.such=1"]) == 1
    assert "no.such" in capsys.readouterr().err


def test_wrong_setting_of_the_broker_is_told_before_anything_starts(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["broker", "--set", "log.segmnt.bytes=1"]) == 2
    assert "did you mean log.segment.bytes?" in capsys.readouterr().err
