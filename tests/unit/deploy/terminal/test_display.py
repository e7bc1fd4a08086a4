import io

import pytest
from rich.console import Console

from deploy.launcher.events import AllReady, Died, Event, Failed, Ready, SparkChecked, Starting, Stopped, Stopping
from deploy.launcher.plan import make_plan
from deploy.launcher.request import Request
from deploy.terminal.display import Display

START: list[Event] = [
    Starting(service="broker", endpoint="localhost:9092"),
    Starting(service="registry", endpoint="http://localhost:8081"),
    Ready(service="broker", endpoint="localhost:9092", after_s=0.3),
    SparkChecked(),
    Ready(service="registry", endpoint="http://localhost:8081", after_s=0.8),
    AllReady(after_s=0.8),
]


def shown(*events: Event, terminal: bool = False) -> str:
    file = io.StringIO()
    console = Console(file=file, force_terminal=terminal, width=200, highlight=False, soft_wrap=True)
    with Display(make_plan(Request()), console) as display:
        for event in events:
            display(event)
    return file.getvalue()


@pytest.mark.parametrize("terminal", [False, True])
def test_each_service_gets_a_line_when_it_is_healthy(terminal: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    text = shown(*START, terminal=terminal)
    if not terminal:
        assert text.splitlines() == [
            "✓ broker      localhost:9092          0.3 s",
            "· spark       starts on first use",
            "✓ registry    http://localhost:8081   0.8 s",
        ]
    assert "0.3 s" in text
    assert "0.8 s" in text


def test_a_death_is_reported_with_its_reason_and_the_last_lines() -> None:
    died = Died(service="connect", how="killed by signal 9 (SIGKILL)", pause_s=0.4, tail=("one [x]", "two"), log="/l")
    text = shown(*START, died, Ready(service="connect", endpoint="http://localhost:8083", after_s=1.0, restarts=2))
    assert "✗ connect killed by signal 9 (SIGKILL); starting it again in 0.4 s. Its log: /l" in text
    assert "    one [x]\n    two\n" in text
    assert text.splitlines()[-1].endswith("1.0 s (back; restart 2)")


def test_a_missing_java_is_reported_with_how_to_install_it() -> None:
    text = shown(SparkChecked(missing="Spark needs Java 17\nInstall one:\n  apt-get install x"))
    assert "! spark       will not start: Spark needs Java 17\n" in text
    assert "apt-get install x" in text


def test_a_failure_shows_the_end_of_the_log_and_what_to_do() -> None:
    text = shown(
        Failed(text="broker refused its settings", next_steps=("see `caudal logs`",), tail=("num.partitions=x",))
    )
    assert text == "✗ broker refused its settings\n    num.partitions=x\n  → see caudal logs\n"


def test_the_end_of_each_service_is_reported_and_what_had_to_be_killed() -> None:
    text = shown(
        Stopping(reason="SIGINT"),
        Stopped(service="connect", after_s=0.5),
        Stopped(service="broker", after_s=30.0, was_killed=True),
    )
    assert "✓ connect     stopped  0.5 s\n" in text
    assert "! broker was killed: it had not stopped after 30.0 s\n" in text
