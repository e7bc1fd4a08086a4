"""Operations of the engine on sinks."""

from typing import Any

from connectors.spark.commits import Commits
from connectors.spark.positions import first_positions
from connectors.spark.query import RUNNING
from connectors.spark.spec import SinkFolders, SinkSpec
from streams.errors import EngineError
from streams.spark.commits.manifest import flatten
from streams.spark.engine.job import EngineContext


def alter_offsets(context: EngineContext, arguments: dict[str, Any]) -> None:
    """Change where a stopped sink continues: `offsets` are [topic, partition, offset or null], null is the beginning;
    with `forget` it starts over."""
    spec = SinkSpec.of_json(arguments["spec"])
    outbox = spec.open_outbox()
    folders = SinkFolders.of(context.settings.warehouse, spec.connector)
    commits = Commits(spec, folders, files=context.files, tables=context.tables, outbox=outbox)
    try:
        # The last batch is finished first: once offsets are changed, it is unknown whether its dead letters were sent.
        manifest = commits.recover()
        if arguments.get("forget"):
            commits.begin({})
            return
        positions = (
            first_positions(spec, committed=outbox.committed()) if manifest is None else flatten(manifest.positions)
        )
        for topic, partition, offset in arguments["offsets"]:
            positions.pop((topic, partition), None)
            if offset is not None:
                positions[topic, partition] = offset
        commits.begin(positions)
    finally:
        outbox.close()


def reload(_: EngineContext, arguments: dict[str, Any]) -> dict[str, int]:
    """Read a range of a topic again and replace its rows: `connector`, `topic`, `partition`, `start`, `end`."""
    connector = str(arguments["connector"])
    query = RUNNING.get(connector)
    if query is None:
        running = ", ".join(sorted(RUNNING)) or "none"
        raise EngineError("NotRunning", f"Sink {connector} does not run in this engine; running sinks: {running}")
    topic, partition = str(arguments["topic"]), int(arguments["partition"])
    return {"rows": query.reload(topic, partition, start=int(arguments["start"]), end=int(arguments["end"]))}
