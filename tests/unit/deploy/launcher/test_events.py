import os

import pytest

from deploy.launcher.events import (
    AllReady,
    Died,
    Event,
    EventPipe,
    Failed,
    Ready,
    SparkChecked,
    Starting,
    Stopped,
    Stopping,
    decode_event,
)

EVENTS: list[Event] = [
    Starting(service="broker", endpoint="localhost:9092"),
    Ready(service="broker", endpoint="localhost:9092", after_s=0.3, restarts=1),
    Died(service="broker", how="killed by signal 9 (SIGKILL)", pause_s=0.2, tail=("a\nb", "ç"), log="/x"),
    SparkChecked(missing="no Java"),
    AllReady(after_s=2.5),
    Stopping(reason="SIGTERM"),
    Stopped(service="broker", after_s=0.1, was_killed=True),
    Failed(text="port taken", next_steps=("do this",), tail=("last words",)),
]


def test_events_arrive_in_another_process_unchanged() -> None:
    reading, writing = os.pipe()
    pipe = EventPipe(writing)
    for event in EVENTS:
        pipe(event)
    pipe.close()
    with os.fdopen(reading, "rb") as news:
        assert [decode_event(line) for line in news] == EVENTS


def test_a_launcher_goes_on_after_its_listener_has_gone() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    pipe = EventPipe(writing)
    pipe(EVENTS[0])
    pipe(EVENTS[1])
    with pytest.raises(OSError):
        os.fstat(writing)
