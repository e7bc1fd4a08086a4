import os
import socket
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from streams.errors import EngineUnavailable
from streams.spark.engine.folder import EngineFolder
from streams.spark.engine.starting import open_channel


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[EngineFolder]:
    """One with a socket that accepts connections."""
    monkeypatch.setenv("XDG_RUNTIME_DIR", "")
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    folder = EngineFolder(tmp_path / "engine").create()
    with closing(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)) as listening:
        listening.bind(str(folder.choose_socket()))
        listening.listen()
        yield folder


def test_an_engine_of_this_user_is_connected_to(folder: EngineFolder) -> None:
    channel = open_channel(folder)
    assert channel is not None
    channel.close()


def test_nothing_is_sent_to_an_engine_of_another_user(folder: EngineFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "getuid", lambda: 54321)
    with pytest.raises(EngineUnavailable, match="belongs to another user: set spark.caudal.data.dir"):
        open_channel(folder)
