"""`caudal group`: look at consumer groups, move their offsets, delete them."""

from typing import TYPE_CHECKING, Annotated

import typer

from deploy import completion_values as values
from deploy.options import (
    DEFAULT_BOOTSTRAP,
    BootstrapOption,
    ClientConfigOption,
    Output,
    OutputOption,
    PropertiesOption,
    TimeoutOption,
    client_settings,
)

if TYPE_CHECKING:
    from core_broker.client.admin import Admin
    from core_broker.client.consumer import Place
    from core_broker.client.models import Group
    from deploy.positions import Position

app = typer.Typer(no_args_is_help=True, help="Consumer groups: list, describe, seek, delete.")

GroupArgument = Annotated[
    str, typer.Argument(metavar="GROUP", help="Id of the group.", show_default=False, autocompletion=values.groups)
]


@app.command(name="list", epilog="Example:\n\ncaudal group list")
def list_groups(
    *,
    output: OutputOption = Output.TABLE,
    bootstrap: BootstrapOption = DEFAULT_BOOTSTRAP,
    properties: PropertiesOption = None,
    client_config: ClientConfigOption = None,
    timeout: TimeoutOption = 10.0,
) -> None:
    """List the groups and their states."""
    from core_broker.client.admin import Admin
    from deploy.output import note, print_json, table, waiting

    with waiting("asking the cluster"):
        groups = Admin(client_settings(bootstrap, properties, client_config, timeout)).groups()
    if output is Output.JSON:
        print_json([{"group": group.group_id, "state": group.state, "type": group.kind} for group in groups])
    elif groups:
        table("", ["Group", "State", "Type"], [(group.group_id, group.state, group.kind) for group in groups])
    else:
        note("no groups yet; one appears when a consumer with a group.id connects")


@app.command(epilog="Examples:\n\ncaudal group describe billing\n\ncaudal group describe billing -o json")
def describe(
    group_id: GroupArgument,
    *,
    output: OutputOption = Output.TABLE,
    bootstrap: BootstrapOption = DEFAULT_BOOTSTRAP,
    properties: PropertiesOption = None,
    client_config: ClientConfigOption = None,
    timeout: TimeoutOption = 10.0,
) -> None:
    """Show members, assignments, committed offsets and lag of a group."""
    from core_broker.client.admin import Admin
    from deploy.output import waiting

    admin = Admin(client_settings(bootstrap, properties, client_config, timeout))
    with waiting(f"asking about {group_id}"):
        group = _existing(admin, group_id)
        committed = admin.group_offsets(group_id)
        assigned = {place for member in group.members for place in member.partitions}
        ends = admin.offsets(sorted(assigned | committed.keys()), "latest")
    if output is Output.JSON:
        _describe_json(group, committed, ends)
    else:
        _describe_table(group, committed, ends)


@app.command(
    epilog="Examples:\n\n"
    "caudal group seek billing --topic orders --to beginning\n\n"
    "caudal group seek billing --topic orders --partition 3 --to 1200 --dry-run\n\n"
    "caudal group seek billing --topic orders --to 2h      (two hours ago)"
)
def seek(
    group_id: GroupArgument,
    *,
    topic: Annotated[
        str,
        typer.Option(
            "--topic", "-t", help="Topic whose offsets to move.", show_default=False, autocompletion=values.topics
        ),
    ],
    to: Annotated[
        str,
        typer.Option(
            "--to",
            metavar="POSITION",
            help="beginning, end, an offset, -N (last N), a time, or how long ago (15m, 2h, 1d).",
            show_default=False,
        ),
    ],
    partition: Annotated[
        list[int] | None, typer.Option("--partition", "-p", help="Only these partitions. Repeat it for more.")
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", "-n", help="Only show what would change.")] = False,
    output: OutputOption = Output.TABLE,
    bootstrap: BootstrapOption = DEFAULT_BOOTSTRAP,
    properties: PropertiesOption = None,
    client_config: ClientConfigOption = None,
    timeout: TimeoutOption = 10.0,
) -> None:
    """Move the committed offsets of a group that has no running members."""
    from core_broker.client.admin import Admin
    from core_broker.service.clock import SystemClock
    from deploy.output import done, note, print_json, table, waiting
    from deploy.positions import parse_position

    try:
        position = parse_position(to, SystemClock())
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--to") from None
    admin = Admin(client_settings(bootstrap, properties, client_config, timeout))
    with waiting(f"moving {group_id}"):
        found = [item.index for item in admin.topics([topic])[0].partitions]
        places = [(topic, index) for index in found if not partition or index in partition]
        before = admin.group_offsets(group_id)
        after = _offsets_at(admin, places, position)
        if not dry_run and after:
            admin.set_group_offsets(group_id, after)
    rows = [(place[0], place[1], before.get(place), offset) for place, offset in after.items()]
    if output is Output.JSON:
        print_json([{"topic": t, "partition": p, "before": old, "after": new} for t, p, old, new in rows])
        return
    shown = [(t, str(p), "–" if old is None else old, new) for t, p, old, new in rows]
    table("", ["Topic", "Partition #", "Before #", "After #"], shown)
    if dry_run:
        note("nothing was changed (--dry-run)")
    else:
        done(f"group [bold]{group_id}[/] moved")


@app.command(epilog="Example:\n\ncaudal group delete billing")
def delete(
    group_ids: Annotated[
        list[str],
        typer.Argument(metavar="GROUP...", help="Groups to delete.", show_default=False, autocompletion=values.groups),
    ],
    *,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    bootstrap: BootstrapOption = DEFAULT_BOOTSTRAP,
    properties: PropertiesOption = None,
    client_config: ClientConfigOption = None,
    timeout: TimeoutOption = 10.0,
) -> None:
    """Delete groups with their committed offsets; they must have no running members."""
    from core_broker.client.admin import Admin
    from deploy.output import tell_deleted, waiting

    if not yes:
        typer.confirm(f"Delete {', '.join(group_ids)} with all committed offsets?", abort=True, err=True)
    admin = Admin(client_settings(bootstrap, properties, client_config, timeout))
    with waiting("deleting"):
        outcome = admin.delete_groups(group_ids)
    if not tell_deleted("group", outcome, ["stop its consumers first"]):
        raise typer.Exit(1)


def _existing(admin: "Admin", group_id: str) -> "Group":
    from core_broker.client.errors import NotFound

    group = admin.group(group_id)
    if group.state == "dead":
        raise NotFound(f"group {group_id} does not exist")
    return group


def _offsets_at(admin: "Admin", places: "list[Place]", position: "Position") -> "dict[Place, int]":
    from deploy.positions import resolve

    first, end = admin.offsets(places, "earliest"), admin.offsets(places, "latest")
    timed = admin.offsets(places, position.value) if position.kind == "time" else {}
    wanted = {}
    for place in places:
        offset = resolve(position, first=first[place], end=end[place])
        if offset is None:  # a time; after the last record means the end
            offset = timed[place] if timed[place] >= 0 else end[place]
        wanted[place] = offset
    return wanted


def _describe_json(group: "Group", committed: "dict[Place, int]", ends: "dict[Place, int]") -> None:
    from deploy.output import print_json

    offsets = [
        {"topic": topic, "partition": index, "committed": committed.get((topic, index)), "end": end}
        for (topic, index), end in sorted(ends.items())
    ]
    print_json(
        {
            "group": group.group_id,
            "state": group.state,
            "type": group.kind,
            "assignor": group.assignor,
            "coordinator": group.coordinator,
            "members": group.members,
            "offsets": offsets,
            "lag": sum(end - committed[place] for place, end in ends.items() if place in committed),
        }
    )


def _describe_table(group: "Group", committed: "dict[Place, int]", ends: "dict[Place, int]") -> None:
    from deploy.output import facts, note, table

    lag = sum(end - committed[place] for place, end in ends.items() if place in committed)
    facts(
        f"Group {group.group_id}",
        [
            ("state", group.state),
            ("type", group.kind or "classic"),
            ("assignor", group.assignor or "–"),
            ("coordinator", f"{group.coordinator.host}:{group.coordinator.port}" if group.coordinator else "–"),
            ("lag", lag),
        ],
    )
    if group.members:
        rows = [(item.member_id, item.client_id, item.host, _ranges(item.partitions)) for item in group.members]
        table("Members", ["Member", "Client", "Host", "Partitions"], rows)
    else:
        note("\nno members are running")
    if ends:
        owners = {place: member.client_id for member in group.members for place in member.partitions}
        table(
            "Offsets",
            ["Topic", "Partition #", "Committed #", "End #", "Lag #", "Client"],
            [
                (
                    place[0],
                    str(place[1]),
                    committed.get(place, "–"),
                    end,
                    end - committed[place] if place in committed else "–",
                    owners.get(place, "–"),
                )
                for place, end in sorted(ends.items())
            ],
        )


def _ranges(places: "tuple[Place, ...]") -> str:
    """`orders[0,1,2] users[0]`."""
    by_topic: dict[str, list[str]] = {}
    for topic, index in places:
        by_topic.setdefault(topic, []).append(str(index))
    return " ".join(f"{topic}[{','.join(indexes)}]" for topic, indexes in by_topic.items()) or "–"
