"""What the engine can be asked about a sink that does not run."""

from typing import Any

from connectors.spark.commits import Commits
from connectors.spark.letter_box import LetterBox
from connectors.spark.manifest import TopicPartition, flat
from connectors.spark.query import RUNNING
from connectors.spark.spec import SinkFolders, SinkSpec
from connectors.spark.starting import first_positions
from streams.errors import EngineError
from streams.spark.engine.job import EngineContext


def alter_offsets(context: EngineContext, arguments: dict[str, Any]) -> None:
    """Let a sink read on from other offsets: `offsets` are [topic, partition, offset or null], null is the beginning;
    with `forget` it begins anew."""
    spec = SinkSpec.of_json(arguments["spec"])
    box = LetterBox(spec)
    folders = SinkFolders.of(context.settings.warehouse, spec.connector)
    commits = Commits(spec, folders, files=context.files, tables=context.tables, box=box)
    try:
        # What was decided is done first: it cannot be told later whether its letters were sent.
        manifest = commits.recover()
        positions = first_positions(spec, committed=box.committed()) if manifest is None else flat(manifest.positions)
        commits.begin({} if arguments.get("forget") else _changed(positions, arguments["offsets"]))
    finally:
        box.close()


def reload(_: EngineContext, arguments: dict[str, Any]) -> dict[str, int]:
    """Read a range of a topic once more and replace its rows: `connector`, `topic`, `partition`, `start`, `end`."""
    connector = str(arguments["connector"])
    query = RUNNING.get(connector)
    if query is None:
        there = ", ".join(sorted(RUNNING)) or "none"
        raise EngineError("NotRunning", f"Sink {connector} does not run in this engine; there run: {there}")
    topic, partition = str(arguments["topic"]), int(arguments["partition"])
    return {"rows": query.reload(topic, partition, start=int(arguments["start"]), end=int(arguments["end"]))}


def _changed(
    positions: dict[TopicPartition, int], changes: list[tuple[str, int, int | None]]
) -> dict[TopicPartition, int]:
    changed = dict(positions)
    for topic, partition, offset in changes:
        changed.pop((topic, partition), None)
        if offset is not None:
            changed[topic, partition] = offset
    return changed
