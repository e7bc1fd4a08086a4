"""`caudal cluster`: brokers, controllers, and partitions that need attention."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

import typer
from rich.text import Text

from deploy.commands.cluster import brokers, moves
from deploy.commands.options import ClusterOptions, Commands, Output, OutputOption
from deploy.terminal.output import done, examples, facts, failure, note, print_json, table, waiting
from deploy.views.text import duration, plural, size

if TYPE_CHECKING:
    from deploy.views.cluster import BrokerView, ClusterView, PartitionView, QuorumMember

app = Commands(
    help="The cluster: describe, drain, elect, grow, reassign, unregister, add-voter, remove-voter.",
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
    columns = ["Id #", "Address", "Rack", "State", "Leaders #", "Replicas #", "Data #", "Disk free #"]
    table("Brokers", columns, [_broker_row(item) for item in found.brokers])
    if found.quorum is not None:
        rows = [_quorum_row(item, "voter") for item in found.quorum.voters]
        rows += [_quorum_row(item, "observer") for item in found.quorum.observers]
        table(f"Quorum, epoch {found.quorum.epoch}", ["Id #", "Role", "Lag #", "Lag in time #"], rows)
    _print_partitions("Offline: no replica can lead", found.offline)
    _print_partitions("Under min.insync.replicas: no writes with acks=all", found.under_min_isr)
    _print_partitions("Under-replicated", found.under_replicated)
    if found.reassignments:
        moves.print_reassignments(found.reassignments)
    if found.offline:
        text = f"{plural(len(found.offline), 'partition')} cannot be read or written"
        failure(text, ["start the brokers of their replicas", "or accept loss:  `caudal cluster elect --unclean`"])
    elif not found.under_replicated:
        done("every partition has all its replicas in sync")
    else:
        note("replicas catch up by themselves once their brokers run")


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


app.add_typer(moves.app)
app.add_typer(moves.reassign_app, name="reassign")
app.add_typer(brokers.app)
