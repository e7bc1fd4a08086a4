"""`caudal cluster elect`, `join-settings`, `unregister`, `add-voter`, `remove-voter`."""

import time
from typing import TYPE_CHECKING, Annotated, Final

import typer

from deploy.commands import completion
from deploy.commands.options import ClusterOptions, Commands, Output, OutputOption, YesOption
from deploy.terminal.output import done, examples, failure, out, print_json, steps, table, waiting
from deploy.views.text import plural

if TYPE_CHECKING:
    from core_broker.client.admin import Admin

app = Commands()

BrokerArgument = Annotated[int, typer.Argument(metavar="BROKER", help="Id of the broker.", show_default=False)]
TopicsOption = Annotated[
    list[str] | None,
    typer.Option("--topic", "-t", help="Only this topic. Repeat it for more.", autocompletion=completion.topics),
]
_FOLLOWING_S: Final = 5.0
"""Longer than a voter that is up takes between two fetches."""
_LOOK_S: Final = 0.3
_MOVED_MS: Final = 100
"""The leader may report one moment a millisecond apart: it converts from a clock that is not the wall's."""
_SEE: Final = "see what there is:  `caudal cluster`"


@app.command(epilog=examples("caudal cluster elect", "caudal cluster elect --topic orders --unclean"))
def elect(
    cluster: ClusterOptions,
    *,
    topic: TopicsOption = None,
    unclean: Annotated[
        bool, typer.Option("--unclean", help="Partitions without a leader get any live replica, and may lose records.")
    ] = False,
    yes: YesOption = False,
    output: OutputOption = Output.TABLE,
) -> None:
    """Make the preferred replicas leaders again, which spreads the load as planned."""
    client = cluster.admin()
    with waiting(f"asking {cluster.bootstrap}"):
        topics = client.topics(topic) if topic else client.all_topics()
    partitions = None if topic is None else [(item.name, part.index) for item in topics for part in item.partitions]
    if unclean:
        partitions = [(item.name, part.index) for item in topics for part in item.partitions if part.leader < 0]
        if partitions and not yes:
            text = f"{plural(len(partitions), 'partition')} would get a leader that may lack acknowledged records; "
            typer.confirm(f"{text}those records are lost for good. Elect?", abort=True, err=True)
    outcome = {}
    if partitions is None or partitions:
        with waiting("electing"):
            outcome = client.maintenance.elect_leaders(partitions, is_unclean=unclean)
    failed = {name: error for name, error in outcome.items() if error is not None}
    if output is Output.JSON:
        print_json(
            [
                {"topic": name, "partition": index, "error": None if error is None else str(error)}
                for (name, index), error in outcome.items()
            ]
        )
    else:
        elected = len(outcome) - len(failed)
        done(f"{plural(elected, 'leader')} elected" if outcome else "no election is needed")
        if failed:
            rows = [(name, str(index), str(error)) for (name, index), error in failed.items()]
            table("Not elected", ["Topic", "Partition #", "Reason"], rows)
            steps(["start the brokers of these partitions; see which:  `caudal cluster`"])
    if failed:
        raise typer.Exit(1)


@app.command(
    name="join-settings",
    epilog=examples(
        "caudal cluster join-settings 4 > broker.properties",
        "caudal cluster join-settings 4 --kafka > server.properties",
    ),
)
def print_join_settings(
    cluster: ClusterOptions,
    node: Annotated[int, typer.Argument(metavar="NODE", help="Id of the new broker.", show_default=False)],
    *,
    kafka: Annotated[bool, typer.Option("--kafka", help="For a broker of Apache Kafka.")] = False,
) -> None:
    """Print the properties file of a new broker, which joins this cluster with it."""
    from deploy.views.join_settings import UnknownControllersError, join_settings

    client = cluster.admin()
    with waiting(f"asking {cluster.bootstrap}"):
        found, quorum = client.cluster(), client.maintenance.quorum()
        taken = {item.id for item in client.maintenance.registered_brokers()} | {item.id for item in quorum.voters}
        configs = client.configs_of_brokers([found.brokers[0].id])[found.brokers[0].id]
    if node in taken:
        failure(f"the cluster has a node {node} already", [f"choose another id, such as {max(taken) + 1}"])
        raise typer.Exit(1)
    values = {config.key: config.value for config in configs}
    try:
        lines = join_settings(node, cluster_id=found.cluster_id, quorum=quorum, configs=values, for_kafka=kafka)
    except UnknownControllersError:
        failure(
            "the cluster does not say where its controllers listen",
            ["take  controller.quorum.*  and  controller.listener.names  from the settings of another broker"],
        )
        raise typer.Exit(1) from None
    out.print("\n".join(lines), markup=False)


@app.command(epilog=examples("caudal cluster unregister 3"))
def unregister(
    cluster: ClusterOptions, broker: BrokerArgument, *, yes: YesOption = False, output: OutputOption = Output.TABLE
) -> None:
    """Forget a broker that has been drained and stopped, and will not return."""
    client = cluster.admin()
    with waiting(f"asking {cluster.bootstrap}"):
        found = {item.id: item for item in client.maintenance.registered_brokers()}
        held = sum(broker in part.replicas for topic in client.all_topics() for part in topic.partitions)
        voters = [item.id for item in client.maintenance.quorum().voters]
    if broker not in found:
        known = ", ".join(map(str, found))
        failure(f"there is no broker {broker}; the cluster has {known}", [_SEE])
        raise typer.Exit(1)
    if not found[broker].is_fenced:
        failure(
            f"broker {broker} is live",
            [
                *([f"move its replicas away:  `caudal cluster drain {broker}`"] if held else []),
                "stop it, and wait until  `caudal cluster`  shows it as fenced",
                f"then again:  `caudal cluster unregister {broker}`",
            ],
        )
        raise typer.Exit(1)
    if held:
        failure(
            f"broker {broker} still has {plural(held, 'replica')}",
            [
                f"move them to other brokers:  `caudal cluster drain {broker}`",
                "or start it again, if it holds the only copy",
            ],
        )
        raise typer.Exit(1)
    if broker in voters and not _is_following(client, broker):
        failure(
            f"broker {broker} still votes in the quorum, which would wait for it",
            [
                f"first:  `caudal cluster remove-voter {broker}`",
                "or start it with  process.roles=controller,  so that it goes on voting",
            ],
        )
        raise typer.Exit(1)
    if not yes:
        typer.confirm(f"Forget broker {broker}?", abort=True, err=True)
    with waiting(f"unregistering broker {broker}"):
        client.maintenance.unregister_broker(broker)
    if output is Output.JSON:
        print_json({"broker": broker, "unregistered": True})
    else:
        rest = "it goes on as a controller" if broker in voters else "its data folder can be deleted"
        done(f"broker [bold]{broker}[/] is forgotten; {rest}")


@app.command(
    name="add-voter",
    epilog=examples(
        "caudal cluster add-voter 4 --address controller-4.example:9093",
        "Nodes with controller.quorum.auto.join.enable=true become voters by themselves.",
    ),
)
def add_voter(
    cluster: ClusterOptions,
    node: Annotated[int, typer.Argument(metavar="NODE", help="Id of an observer.", show_default=False)],
    *,
    address: Annotated[
        str, typer.Option("--address", metavar="HOST:PORT", help="Its controller listener.", show_default=False)
    ],
    listener: Annotated[str, typer.Option("--listener", metavar="NAME", help="Name of that listener.")] = "CONTROLLER",
    output: OutputOption = Output.TABLE,
) -> None:
    """Let a controller that follows the metadata log vote in the quorum."""
    host, _, port = address.rpartition(":")
    if not host or not port.isdecimal() or int(port) > 65535:
        raise typer.BadParameter("must be HOST:PORT", param_hint="--address")
    client = cluster.admin()
    with waiting(f"asking {cluster.bootstrap}"):
        quorum = client.maintenance.quorum()
    found = next((item for item in quorum.observers if item.id == node), None)
    if found is None:
        if any(item.id == node for item in quorum.voters):
            _report_voters(client, output)
            return
        known = ", ".join(str(item.id) for item in quorum.observers) or "none"
        failure(
            f"node {node} does not follow the metadata log; observers: {known}",
            ["start it with the role  controller  and  controller.quorum.bootstrap.servers"],
        )
        raise typer.Exit(1)
    with waiting(f"adding voter {node}"):
        client.maintenance.add_voter(node, found.directory_id, listener=listener, host=host.strip("[]"), port=int(port))
    _report_voters(client, output)


@app.command(
    name="remove-voter",
    epilog=examples(
        "caudal cluster remove-voter 3",
        "A node that runs with controller.quorum.auto.join.enable=true comes back: stop it first.",
    ),
)
def remove_voter(
    cluster: ClusterOptions,
    node: Annotated[int, typer.Argument(metavar="NODE", help="Id of a voter.", show_default=False)],
    *,
    yes: YesOption = False,
    output: OutputOption = Output.TABLE,
) -> None:
    """Let a controller no longer vote in the quorum, so that the others need not wait for it."""
    client = cluster.admin()
    with waiting(f"asking {cluster.bootstrap}"):
        voters = client.maintenance.quorum().voters
    found = next((item for item in voters if item.id == node), None)
    if found is None:
        failure(f"node {node} is not a voter; voters: {', '.join(str(item.id) for item in voters)}", [_SEE])
        raise typer.Exit(1)
    if len(voters) == 1:
        failure(f"node {node} is the only voter", ["let another node join the quorum first"])
        raise typer.Exit(1)
    if not yes:
        left = len(voters) - 1
        text = f"{plural(left, 'voter')} would remain, and {plural((left - 1) // 2, 'failure')} be survived."
        typer.confirm(f"{text} Remove voter {node}?", abort=True, err=True)
    with waiting(f"removing voter {node}"):
        client.maintenance.remove_voter(node, found.directory_id)
    _report_voters(client, output)


def _is_following(client: "Admin", voter: int) -> bool:
    """Whether a voter is up, though its broker is not: it leads the quorum, or is seen to catch up with its leader."""
    first: int | None = None
    ends_at = time.monotonic() + _FOLLOWING_S
    while time.monotonic() < ends_at:
        quorum = client.maintenance.quorum()
        caught_up_ms = next((item.caught_up_ms for item in quorum.voters if item.id == voter), -1)
        if quorum.leader_id == voter or (first is not None and caught_up_ms > first + _MOVED_MS):
            return True
        first = caught_up_ms if first is None else first
        time.sleep(_LOOK_S)
    return False


def _report_voters(client: "Admin", output: Output) -> None:
    voters = [item.id for item in client.maintenance.quorum().voters]
    if output is Output.JSON:
        print_json({"voters": voters})
    else:
        done(f"voters are now {', '.join(map(str, sorted(voters)))}")
