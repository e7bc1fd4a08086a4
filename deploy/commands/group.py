"""`caudal group`: look at consumer groups, move their offsets, delete them."""

from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape

from deploy.commands import completion
from deploy.commands.options import (
    POSITION_HELP,
    ClusterOptions,
    Commands,
    Output,
    OutputOption,
    PartitionsOption,
    YesOption,
)
from deploy.terminal.output import done, examples, facts, note, print_json, report_deleted, table, waiting

if TYPE_CHECKING:
    from core_broker.client.consumer import TopicPartition

app = Commands(no_args_is_help=True, help="Consumer groups: list, describe, seek, delete.")

GroupArgument = Annotated[
    str, typer.Argument(metavar="GROUP", help="Id of the group.", show_default=False, autocompletion=completion.groups)
]


@app.command(name="list", epilog=examples("caudal group list"))
def list_groups(cluster: ClusterOptions, *, output: OutputOption = Output.TABLE) -> None:
    """List the groups and their states."""
    with waiting("asking the cluster"):
        groups = cluster.admin().groups()
    if output is Output.JSON:
        print_json([{"group": group.group_id, "state": group.state, "type": group.kind} for group in groups])
    elif groups:
        table("", ["Group", "State", "Type"], [(group.group_id, group.state, group.kind) for group in groups])
    else:
        note("no groups yet; one appears when a consumer with a group.id connects")


@app.command(epilog=examples("caudal group describe billing", "caudal group describe billing -o json"))
def describe(cluster: ClusterOptions, group_id: GroupArgument, *, output: OutputOption = Output.TABLE) -> None:
    """Show members, assignments, committed offsets and lag of a group."""
    from deploy.views.groups import describe_group

    client = cluster.admin()
    with waiting(f"asking about {group_id}"):
        group = describe_group(client, group_id)
    if output is Output.JSON:
        print_json(group)
        return
    coordinator = f"{group.coordinator.host}:{group.coordinator.port}" if group.coordinator else "–"
    pairs = [("state", group.state), ("type", group.type or "classic"), ("assignor", group.assignor or "–")]
    facts(f"Group {group.group}", [*pairs, ("coordinator", coordinator), ("lag", group.lag)])
    if group.members:
        members = [(item.member_id, item.client_id, item.host, _by_topic(item.partitions)) for item in group.members]
        table("Members", ["Member", "Client", "Host", "Partitions"], members)
    else:
        note("\nno members are running")
    rows = [
        (
            item.topic,
            str(item.partition),
            "–" if item.committed is None else item.committed,
            item.end,
            "–" if item.lag is None else item.lag,
            group.client_of(item) or "–",
        )
        for item in group.offsets
    ]
    if rows:
        table("Offsets", ["Topic", "Partition #", "Committed #", "End #", "Lag #", "Client"], rows)


@app.command(
    epilog=examples(
        "caudal group seek billing --topic orders --to beginning",
        "caudal group seek billing --topic orders --partition 3 --to 1200 --dry-run",
        "caudal group seek billing --topic orders --to 2h      (two hours ago)",
    )
)
def seek(
    cluster: ClusterOptions,
    group_id: GroupArgument,
    *,
    topic: Annotated[
        str,
        typer.Option(
            "--topic", "-t", help="Topic whose offsets to move.", show_default=False, autocompletion=completion.topics
        ),
    ],
    to: Annotated[
        str,
        typer.Option(
            "--to",
            metavar="POSITION",
            help=POSITION_HELP,
            show_default=False,
        ),
    ],
    partition: PartitionsOption = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", "-n", help="Only show what would change.")] = False,
    output: OutputOption = Output.TABLE,
) -> None:
    """Move the committed offsets of a group that has no running members."""
    from core_broker.service.clock import SystemClock
    from deploy.views.groups import offsets_at
    from deploy.views.positions import parse_position

    try:
        position = parse_position(to, SystemClock())
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--to") from None
    client = cluster.admin()
    with waiting(f"moving {group_id}"):
        found = [item.index for item in client.topics([topic])[0].partitions]
        partitions = [(topic, index) for index in found if not partition or index in partition]
        before = client.group_offsets(group_id)
        after = offsets_at(client, partitions, position)
        if not dry_run and after:
            client.set_group_offsets(group_id, after)
    rows = [(*item, before.get(item), offset) for item, offset in after.items()]
    if output is Output.JSON:
        print_json([{"topic": t, "partition": p, "before": old, "after": new} for t, p, old, new in rows])
        return
    shown = [(t, str(p), "–" if old is None else old, new) for t, p, old, new in rows]
    table("", ["Topic", "Partition #", "Before #", "After #"], shown)
    if dry_run:
        note("nothing was changed (--dry-run)")
    else:
        done(f"group [bold]{escape(group_id)}[/] moved")


@app.command(epilog=examples("caudal group delete billing"))
def delete(
    cluster: ClusterOptions,
    group_ids: Annotated[
        list[str],
        typer.Argument(
            metavar="GROUP...", help="Groups to delete.", show_default=False, autocompletion=completion.groups
        ),
    ],
    *,
    yes: YesOption = False,
) -> None:
    """Delete groups with their committed offsets; they must have no running members."""
    from deploy.clients.failures import refusal_among

    if not yes:
        typer.confirm(f"Delete {', '.join(group_ids)} with all committed offsets?", abort=True, err=True)
    client = cluster.admin()
    with waiting("deleting"):
        outcome = client.delete_groups(group_ids)
    if not report_deleted("group", outcome, ["stop its consumers first"]):
        raise refusal_among(outcome.values()) or typer.Exit(1)


def _by_topic(partitions: "tuple[TopicPartition, ...]") -> str:
    """`orders[0,1,2] users[0]`."""
    by_topic: dict[str, list[str]] = {}
    for topic, index in partitions:
        by_topic.setdefault(topic, []).append(str(index))
    return " ".join(f"{topic}[{','.join(indexes)}]" for topic, indexes in by_topic.items()) or "–"
