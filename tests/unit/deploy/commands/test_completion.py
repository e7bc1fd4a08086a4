import subprocess
from pathlib import Path

import pytest

from deploy.cli import main
from deploy.clients.profiles import Profile, changing_profiles
from deploy.commands.completion import SCRIPTS, Shell


@pytest.fixture
def offered(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> "Offered":
    return Offered(monkeypatch, capsys)


class Offered:
    """What the command offers for a line that is being typed."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
        self._monkeypatch = monkeypatch
        self._capsys = capsys

    def __call__(self, line: str) -> dict[str, str]:
        """Each possibility and its help."""
        self._monkeypatch.setenv("_CAUDAL_COMPLETE", "complete_fish")
        self._monkeypatch.setenv("_TYPER_COMPLETE_FISH_ACTION", "get-args")
        self._monkeypatch.setenv("_TYPER_COMPLETE_ARGS", line)
        assert main([]) == 0
        lines = self._capsys.readouterr().out.splitlines()
        return {word: help_ for word, _, help_ in (line.partition("\t") for line in lines if line)}


def test_commands_are_offered_with_what_they_do(offered: Offered) -> None:
    assert {"topic", "broker", "doctor"} <= offered("caudal ").keys()
    assert list(offered("caudal topi")) == ["topic"]
    assert offered("caudal topic del")["delete"].startswith("Delete topics")


def test_options_are_offered(offered: Offered) -> None:
    assert "--bootstrap" in offered("caudal topic list --")


def test_settings_of_a_service_are_offered_as_the_beginning_of_an_assignment(offered: Offered) -> None:
    assert "log.segment.bytes=" in offered("caudal broker --set log.segment.")
    assert "database.url=" in offered("caudal registry --set data")
    assert "spark.caudal.data.dir=" in offered("caudal spark tables --set spark.caudal")


def test_configs_of_topics_are_offered(offered: Offered) -> None:
    assert list(offered("caudal topic alter orders -c cleanup.")) == ["cleanup.policy="]
    assert list(offered("caudal topic alter orders --unset cleanup.")) == ["cleanup.policy"]


def test_operations_of_rules_are_offered_after_those_that_are_typed(offered: Offered) -> None:
    assert list(offered("caudal acl allow User:alice descr")) == ["describe", "describe-configs", "describe-tokens"]
    assert list(offered("caudal acl allow User:alice read,wr")) == ["read,write"]


def test_levels_are_offered_with_their_meaning_in_one_line(offered: Offered) -> None:
    found = offered("caudal schema compatibility orders-value BACK")
    assert list(found) == ["BACKWARD", "BACKWARD_TRANSITIVE"]
    assert found["BACKWARD"] == "a new schema must read what was written with the latest one"


def test_services_are_offered_with_their_purpose(offered: Offered) -> None:
    assert list(offered("caudal up --without re")) == ["registry", "rest-proxy"]
    assert {"launcher", "broker", "spark"} <= offered("caudal logs ").keys()


def test_no_table_is_offered_and_no_spark_started_where_none_runs(offered: Offered, tmp_path: Path) -> None:
    assert offered(f"caudal spark describe --set spark.caudal.data.dir={tmp_path}/spark ") == {}
    assert list(tmp_path.iterdir()) == []


def test_help_says_how_to_install_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", "--help"]) == 0
    assert "source <(caudal completion bash)" in capsys.readouterr().out


@pytest.mark.parametrize(
    "line",
    [
        "caudal topic describe --bootstrap 127.0.0.1:1 ",
        "caudal group describe --bootstrap 127.0.0.1:1 ",
        "caudal user delete --bootstrap 127.0.0.1:1 ",
        "caudal acl list --bootstrap 127.0.0.1:1 ",
        "caudal connector show --connect http://127.0.0.1:1 ",
        "caudal connector show --connect nonsense ",
        "caudal schema show --registry http://127.0.0.1:1 ",
        "caudal topic describe --client-config /no/such/file ",
    ],
)
def test_nothing_is_offered_and_nothing_said_without_an_answer(
    line: str, offered: Offered, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("CAUDAL_COMPLETION_TIMEOUT", "0.2")
    assert offered(line) == {}
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("shell", Shell)
def test_script_of_each_shell_is_printed(shell: Shell, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", shell]) == 0
    assert capsys.readouterr().out == SCRIPTS[shell]
    assert "complete_fish" in SCRIPTS[shell]


@pytest.mark.processes
def test_bash_understands_its_script(tmp_path: Path) -> None:
    script = tmp_path / "caudal.bash"
    script.write_text(SCRIPTS[Shell.BASH])
    assert subprocess.run(["bash", "-n", script], check=True, capture_output=True, timeout=60).stderr == b""


def test_other_shells_are_refused_with_those_that_there_are(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", "tcsh"]) == 2
    assert "fish" in capsys.readouterr().err


def test_profiles_are_offered_with_the_client_files_that_they_name(
    offered: Offered, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("CAUDAL_CONFIG_HOME", str(tmp_path))
    with changing_profiles({"CAUDAL_CONFIG_HOME": str(tmp_path)}) as changes:
        changes.profiles = {"shop": Profile(client_config="/shop.properties"), "stage": Profile(bootstrap="s:9092")}
    assert offered("caudal topic list --profile s") == {"shop": "/shop.properties", "stage": "s:9092"}
    assert list(offered("caudal profile use sh")) == ["shop"]
    (tmp_path / "profiles.json").write_text("nonsense")
    assert offered("caudal topic list --profile s") == {}
