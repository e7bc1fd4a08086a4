"""What the READMEs of connectors say is so."""

import json
import re
from pathlib import Path

import pytest

import connectors
from connect.api.connector import Connector
from connectors.datagen.source import DatagenConnector
from connectors.file.directory_sink import DirectorySinkConnector
from connectors.file.directory_source import DirectorySourceConnector
from connectors.file.stream_sink import FileStreamSinkConnector
from connectors.file.stream_source import FileStreamSourceConnector
from connectors.http.sink import HttpSinkConnector
from connectors.http.source import HttpSourceConnector
from connectors.mirror.checkpoint_source import MirrorCheckpointConnector
from connectors.mirror.heartbeat_source import MirrorHeartbeatConnector
from connectors.mirror.source import MirrorSourceConnector
from connectors.redis.sink import RedisSinkConnector
from connectors.redis.source import RedisStreamSourceConnector
from connectors.sql.sink import SqlSinkConnector
from connectors.sql.source import SqlSourceConnector

ROOT = Path(connectors.__file__).parent
FOLDERS: dict[str, list[type[Connector]]] = {
    "file": [
        FileStreamSourceConnector,
        FileStreamSinkConnector,
        DirectorySourceConnector,
        DirectorySinkConnector,
    ],
    "datagen": [DatagenConnector],
    "http": [HttpSourceConnector, HttpSinkConnector],
    "mirror": [MirrorSourceConnector, MirrorCheckpointConnector, MirrorHeartbeatConnector],
    "redis": [RedisStreamSourceConnector, RedisSinkConnector],
    "sql": [SqlSourceConnector, SqlSinkConnector],
}


@pytest.mark.parametrize("folder", FOLDERS)
def test_every_option_is_in_the_table_with_its_default(folder: str) -> None:
    text = (ROOT / folder / "README.md").read_text()
    for connector in FOLDERS[folder]:
        for key, item in connector.config_class.OPTIONS.items():
            default = "required" if item.is_required else f"`{item.default_text}`" if item.default_text else ""
            assert f"| `{key}` | {default} | {connector.config_class.help_of(key)} |" in text


@pytest.mark.parametrize("folder", FOLDERS)
def test_configurations_to_paste_are_accepted(folder: str) -> None:
    text = (ROOT / folder / "README.md").read_text()
    blocks = [json.loads(block) for block in re.findall(r"```json\n(.*?)```", text, re.DOTALL)]
    by_name = {alias: connector for connector in FOLDERS[folder] for alias in connector.aliases}
    assert len(blocks) == len(FOLDERS[folder])
    for block in blocks:
        by_name[block["config"]["connector.class"]].config_class.parse(block["config"])


def test_every_folder_of_connectors_is_in_the_list() -> None:
    listed = (ROOT / "README.md").read_text()
    folders = sorted(path.parent.name for path in ROOT.glob("*/README.md"))
    assert [name for name in folders if f"[{name}]({name}/README.md)" not in listed] == []
