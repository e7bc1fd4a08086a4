import io
from importlib.metadata import version
from pathlib import Path

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
        ["schema"],
        *(["schema", word] for word in ("register", "list", "show", "diff", "check", "delete", "compatibility")),
        ["connect"],
        ["connect", "new"],
        ["connect-worker"],
        ["connector"],
        *(["connector", word] for word in ("list", "create", "show", "status", "validate", "plugins", "topics")),
        *(["connector", word] for word in ("pause", "resume", "stop", "restart", "delete")),
        *(["connector", "offsets", word] for word in ("show", "set", "reset")),
        ["dlq"],
        *(["dlq", word] for word in ("list", "show", "redrive")),
        ["sql"],
        ["cluster"],
        *(["cluster", word] for word in ("describe", "drain", "elect", "grow", "unregister")),
        *(["cluster", word] for word in ("add-voter", "join-settings", "remove-voter")),
        ["user"],
        *(["user", word] for word in ("create", "list", "delete", "passwd")),
        ["acl"],
        *(["acl", word] for word in ("allow", "deny", "list", "remove", "check")),
        ["quota"],
        *(["quota", word] for word in ("set", "list", "remove")),
        *(["cluster", "reassign", word] for word in ("plan", "run", "watch", "cancel")),
    ],
    ids=lambda words: "-".join(words) or "caudal",
)
def test_every_command_has_help_and_the_leaves_teach_by_example(
    command: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*command, "--help"]) == 0
    text = capsys.readouterr().out
    assert "Usage" in text
    if len(command) >= 2 or command[:1] in (["broker"], ["connect"], ["connect-worker"], ["sql"]):
        assert "Example" in text


def test_the_version_is_that_of_the_distribution(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"caudal {version('caudal')}\n"


@pytest.mark.parametrize(
    "command",
    [
        ["topic", "list"],
        ["topic", "describe", "x"],
        ["topic", "consume", "x"],
        ["group", "list"],
        ["cluster"],
        ["user", "list"],
        ["acl", "list"],
        ["quota", "list"],
    ],
    ids="-".join,
)
def test_unreachable_cluster_is_reported_with_what_to_do_next(
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
        (["acl", "allow", "alice", "read"], "say what it is about: --topic"),
        (["acl", "allow", "alice", "--topic", "x"], "say which operations"),
        (["acl", "allow", "alice", "fly", "--topic", "x"], "is not an operation"),
        (["acl", "allow", "alice", "write", "--group", "x"], "a group has no operation write"),
        (["acl", "allow", "alice", "--consumer", "--topic", "x"], "--consumer needs --topic and --group"),
        (["acl", "check", "alice", "read"], "say what it is about"),
        (["acl", "remove"], "say which rules"),
        (["quota", "set", "--user", "x"], "say how much"),
        (["quota", "set", "--producer-rate", "1MB"], "say whom it is for"),
        (["quota", "set", "--user", "x", "--producer-rate", "fast"], "is not a rate"),
        (["quota", "set", "--user", "x", "--any-user", "--producer-rate", "1"], "say either --user NAME or --any-user"),
        (["quota", "set", "--user", "x", "--ip", "1.2.3.4", "--connection-rate", "1"], "--ip cannot be combined"),
        (["topic", "list", "-X", "ssl.truststore.location=/t.jks"], "keytool -importkeystore -srckeystore /t.jks"),
        (["nonsense"], "No such command"),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, list) else "",
)
def test_wrong_usage_is_reported_without_a_traceback(
    command: list[str], hint: str, closed: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*command, *(closed if len(command) > 1 else [])]) == 2
    error = capsys.readouterr().err
    assert hint in " ".join(error.replace("│", " ").split())
    assert "Traceback" not in error


@pytest.fixture
def no_registry(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Options that reach no registry, quickly."""
    monkeypatch.setenv("NO_COLOR", "1")
    return ["--registry", "http://127.0.0.1:1", "--timeout", "0.3", "-X", "retries.wait.ms=1"]


@pytest.mark.parametrize(
    "command",
    [
        ["list"],
        ["show", "x"],
        ["diff", "x@1", "x@2"],
        ["check", "x", "x.avsc"],
        ["register", "x", "x.avsc"],
        ["delete", "x", "--yes"],
        ["compatibility"],
    ],
    ids="-".join,
)
def test_unreachable_registry_is_reported_with_what_to_do_next(
    command: list[str],
    no_registry: list[str],
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("x.avsc").write_text('"string"')
    assert main(["schema", *command, *no_registry]) == 1
    error = capsys.readouterr().err
    assert "The registry cannot be reached" in error
    assert "caudal registry" in error
    assert "Traceback" not in error


@pytest.mark.parametrize(
    "command,hint",
    [
        (["register", "x", "nothing.avsc"], "nothing.avsc cannot be read"),
        (["register", "x", "README.md"], "Say --type"),
        (["register", "x", "-"], "Say --type"),
        (["check", "x", "-", "--type", "avro"], "stdin is empty"),
        (["check", "x", "-", "--type", "xml"], "'xml'"),
        (["register", "x", "-", "--type", "avro", "--reference", "y"], "must look like NAME=SUBJECT:VERSION"),
        (["register", "x", "-", "--type", "avro", "--metadata", "y"], "must look like key=value"),
        (["show"], "say which schema"),
        (["show", "x", "--id", "1"], "say which schema"),
        (["diff", "x", "nothing.avsc"], "nothing.avsc cannot be read"),
        (["compatibility", "x", "SIDEWAYS"], "is not a level"),
        (["compatibility", "x", "FULL", "--unset"], "either a LEVEL or --unset"),
        (["list", "-X", "no.such=1"], "unknown setting no.such"),
        (["list", "--user", "nobody"], "must be user:password"),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, list) else "",
)
def test_wrong_usage_of_the_registry_is_reported_without_a_traceback(
    command: list[str],
    hint: str,
    no_registry: list[str],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("" if hint == "stdin is empty" else '"string"'))
    assert main(["schema", *command, *no_registry]) == 2
    error = " ".join(capsys.readouterr().err.replace("│", " ").split())
    assert hint in error
    assert "Traceback" not in error


@pytest.fixture
def no_worker(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Options that reach no worker, quickly."""
    monkeypatch.setenv("NO_COLOR", "1")
    return ["--connect", "http://127.0.0.1:1", "--timeout", "0.3"]


@pytest.mark.parametrize(
    "command",
    [
        ["connector", "list"],
        ["connector", "create", "-"],
        ["connector", "validate", "-"],
        ["connector", "delete", "x", "--yes"],
        ["connector", "offsets", "show", "x"],
        ["dlq", "list", "x"],
        ["dlq", "redrive", "x", "--all"],
    ],
    ids="-".join,
)
def test_unreachable_worker_is_reported_with_what_to_do_next(
    command: list[str], no_worker: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO('{"name": "x", "connector.class": "FileStreamSink"}'))
    assert main([*command, *no_worker]) == 1
    error = capsys.readouterr().err
    assert "The Connect worker cannot be reached: http://127.0.0.1:1" in error
    assert "caudal connect" in error
    assert "Traceback" not in error


@pytest.mark.parametrize(
    "command,hint",
    [
        (["connect", "new", "Sheets", "--folder", "/nowhere"], "is not a valid name"),
        (["connect", "new", "sheets", "--sink", "--source"], "choose one of --source, --sink and --both"),
        (["connector", "create", "nothing.json"], "nothing.json cannot be read"),
        (["connector", "create", "-"], "needs a name"),
        (["connector", "validate", "-"], "connector.class is missing"),
        (["connector", "restart", "x", "--task", "0", "--tasks"], "either --task N"),
        (["connector", "offsets", "set", "x"], "give the offsets"),
        (["connector", "offsets", "set", "x", "--at", "orders"], "must look like TOPIC:PARTITION=OFFSET"),
        (["connector", "offsets", "set", "x", "-"], 'must look like {"offsets"'),
        (["connector", "list", "--connect", "localhost:8083"], "must look like http://host:8083"),
        (["dlq", "show", "x", "17"], "must look like PARTITION-OFFSET"),
        (["dlq", "redrive", "x"], "say which ones"),
        (["dlq", "redrive", "x", "0-1", "--all"], "--all cannot be combined"),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, list) else "",
)
def test_wrong_usage_of_connect_is_reported_without_a_traceback(
    command: list[str],
    hint: str,
    no_worker: list[str],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO('{"topics": "orders"}'))
    is_plain = command[0] == "connect" or "--connect" in command
    assert main([*command, *([] if is_plain else no_worker)]) == 2
    error = " ".join(capsys.readouterr().err.replace("│", " ").split())
    assert hint in error
    assert "Traceback" not in error


@pytest.mark.parametrize("service", ["connect", "connect-worker"])
def test_wrong_setting_of_connect_is_reported_before_anything_starts(
    service: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([service, "--set", "grup.id=1"]) == 2
    assert "did you mean group.id?" in capsys.readouterr().err
    assert main([service, "--set", "grup.id=1", "--", "--concurrency", "1"]) == 2


def test_wrong_property_of_the_client_is_reported(closed: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["topic", "list", *closed, "-X", "no.such=1"]) == 1
    assert "no.such" in capsys.readouterr().err


def test_wrong_setting_of_the_broker_is_reported_before_anything_starts(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["broker", "--set", "log.segmnt.bytes=1"]) == 2
    assert "did you mean log.segment.bytes?" in capsys.readouterr().err
