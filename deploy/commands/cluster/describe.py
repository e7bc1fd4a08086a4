"""`caudal cluster`: brokers, controllers, and partitions that need attention."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final

import typer
from rich.markup import escape
from rich.text import Text

from deploy.commands.cluster import brokers, moves
from deploy.commands.options import ClusterOptions, Commands, Output, OutputOption
from deploy.terminal.output import done, err, examples, facts, failure, note, print_json, steps, table, waiting
from deploy.views.text import duration, plural, size

if TYPE_CHECKING:
    from deploy.views.cluster import BrokerView, ClusterView, PartitionView, QuorumMember

app = Commands(
    help="The cluster: describe, join-settings, drain, elect, grow, reassign, unregister, add-voter, remove-voter.",
)
_SHOWN_MAX: Final = 20
"""Partitions in a table for people; JSON has all."""
_LAG_LONG_MS: Final = 10_000


@app.callback(
    invoke_without_command=True,
    epilog=examples(
        "caudal cluster                         the same as  caudal cluster describe",
        "caudal cluster drain 3                 then stop broker 3, and  caudal cluster unregister 3",
        "caudal cluster grow                    replicas of the internal topics, after brokers have joined",
        "caudal cluster reassign plan > moves.json     then  caudal cluster reassign run moves.json",
    ),
)
def cluster(context: typer.Context, cluster: ClusterOptions, *, output: OutputOption = Output.TABLE) -> None:
    """Show the cluster, unless another command is given."""
    if context.invoked_subcommand is None:
        describe(cluster, output=output)
        return
    for name in context.params:
        source = context.get_parameter_source(name)
        if source is not None and source.name == "COMMANDLINE":
            words = f"caudal cluster {context.invoked_subcommand} ..."
            raise typer.BadParameter(f"options come after the command:  {words} --{name.replace('_', '-')} ...")


@app.command(epilog=examples("caudal cluster describe", "caudal cluster --bootstrap kafka.example:9092 -o json"))
def describe(cluster: ClusterOptions, *, output: OutputOption = Output.TABLE) -> None:
    """Show brokers, disks, the quorum, partitions that need attention, and moves of replicas."""
    from deploy.views.cluster import describe_cluster

    client = cluster.admin()
    with waiting(f"asking {cluster.bootstrap}"):
        found = describe_cluster(client)
    if output is Output.JSON:
        print_json(found)
    else:
        _print(found)


def _print(found: "ClusterView") -> None:
    totals = {"topics": found.topics, "partitions": found.partitions, "controller": str(found.controller)}
    facts(f"Cluster {found.cluster_id}", totals.items())
    columns = ["Id #", "Address", "Rack", "Software", "State", "Leaders #", "Replicas #", "Data #", "Disk free #"]
    table("Brokers", columns, [_broker_row(item) for item in found.brokers])
    if found.quorum is not None:
        rows = [_quorum_row(item, "voter") for item in found.quorum.voters]
        rows += [_quorum_row(item, "observer") for item in found.quorum.observers]
        table(f"Quorum, epoch {found.quorum.epoch}", ["Id #", "Role", "Lag #", "Lag in time #"], rows)
    _print_partitions("Offline: no replica can lead", found.offline)
    _print_partitions("Under min.insync.replicas: no writes with acks=all", found.under_min_isr)
    _print_under_replicated(found.under_replicated)
    if found.reassignments:
        moves.print_reassignments(found.reassignments)
    _print_health(found)


def _print_health(found: "ClusterView") -> None:
    """What it all means, and what to do."""
    from deploy.views.cluster_health import missing_brokers, troubles

    missing = missing_brokers(found)
    names = ", ".join(f"{broker.id} ({broker.host}:{broker.port})" for broker in missing)
    advice = [f"start {'them' if len(missing) > 1 else 'it'} again; replicas then catch up by themselves"]
    if found.offline:
        advice.append("or, if it will never come back, accept loss:  `caudal cluster elect --unclean`")
    elif missing:
        advice.append(f"or, if it will never come back:  `caudal cluster drain {missing[0].id}`")
    listed = troubles(found)
    if missing:
        failure(f"{'brokers' if len(missing) > 1 else 'broker'} {names} {'are' if len(missing) > 1 else 'is'} down")
    for trouble in listed:
        err.print(f"[{'bold red]✗' if trouble.is_outage else 'yellow]!'}[/] {escape(trouble.text)}")
    if missing:
        steps(advice)
    elif listed:
        note("replicas catch up by themselves")
    else:
        done("every partition has all its replicas in sync")


def _broker_row(item: "BrokerView") -> tuple[object, ...]:
    if item.fenced:
        state = Text("fenced", style="yellow")
    elif item.disks is None:
        state = Text("does not answer", style="red")
    else:
        state = Text("controller" if item.controller else "ready", style="green")
    disks = item.disks or []
    free = [disk.free_bytes for disk in disks if disk.online and disk.free_bytes >= 0]
    return (
        str(item.id),
        f"{item.host}:{item.port}",
        item.rack or "–",
        f"{item.software} {item.version or ''}".rstrip(),
        state,
        item.leaders,
        item.replicas,
        size(sum(disk.size_bytes for disk in disks)) if disks else "–",
        size(min(free)) if free else "–",
    )


def _quorum_row(item: "QuorumMember", role: str) -> tuple[object, ...]:
    if item.lag_ms is None:
        behind = "–"
    else:
        behind = f"{item.lag_ms} ms" if item.lag_ms < _LAG_LONG_MS else duration(item.lag_ms // 1000)
    return str(item.id), "leader" if item.leader else role, item.lag_records, behind


def _print_partitions(title: str, found: "Iterable[PartitionView]") -> None:
    listed = list(found)
    if not listed:
        return
    rows = [
        (
            item.topic,
            str(item.partition),
            "none" if item.leader < 0 else str(item.leader),
            ",".join(map(str, item.replicas)),
            ",".join(map(str, item.isr)),
            "–" if item.min_isr is None else str(item.min_isr),
        )
        for item in listed[:_SHOWN_MAX]
    ]
    columns = ["Topic", "Partition #", "Leader #", "Replicas", "In sync", "Minimum #"]
    table(f"{title}: {plural(len(listed), 'partition')}", columns, rows)
    if len(listed) > _SHOWN_MAX:
        note(f"and {len(listed) - _SHOWN_MAX} more; all of them:  caudal cluster -o json")


def _print_under_replicated(found: "Sequence[PartitionView]") -> None:
    """By topic: a broker that is missing is missing from every topic."""
    if not found:
        return
    topics: dict[str, list[PartitionView]] = {}
    for item in found:
        topics.setdefault(item.topic, []).append(item)
    rows = [
        (
            name,
            len(items),
            ", ".join(map(str, sorted({id_ for item in items for id_ in set(item.replicas) - set(item.isr)}))),
        )
        for name, items in topics.items()
    ]
    columns = ["Topic", "Partitions #", "Not in sync on broker"]
    table(f"Under-replicated: {plural(len(found), 'partition')}", columns, rows[:_SHOWN_MAX])
    if len(rows) > _SHOWN_MAX:
        note(f"and {len(rows) - _SHOWN_MAX} more topics; all of them:  caudal cluster -o json")


app.add_typer(moves.app)
app.add_typer(moves.reassign_app, name="reassign")
app.add_typer(brokers.app)
