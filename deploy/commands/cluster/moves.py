"""`caudal cluster drain`, `grow` and `reassign`: move replicas between brokers, and watch them until they are there."""

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from deploy.commands.cluster.brokers import BrokerArgument, TopicsOption
from deploy.commands.cluster.throttle import ThrottleOption, remove_leftovers, throttled
from deploy.commands.options import ClusterOptions, Commands, Output, OutputOption, YesOption
from deploy.terminal.output import done, examples, failure, note, print_json, progress, table, waiting
from deploy.views.text import plural, size

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

    from core_broker.client.admin import Admin
    from core_broker.client.consumer import TopicPartition
    from core_broker.client.models import Reassignment, Topic
    from deploy.views.replica_plan import Move, Plan

app = Commands()
reassign_app = Commands(no_args_is_help=True, help="Replicas on chosen brokers: plan, run, watch, cancel.")

REPLICAS_WANTED: Final = 3
_NAMED_MAX: Final = 5
_LOOK_S: Final = 0.3
_LOOKS_PER_MEASUREMENT: Final = 10
_FAILED_LOOKS_MAX: Final = 60
"""Failed requests in a row while watching: brokers may be restarted meanwhile."""
_METADATA_S: Final = 10.0
"""How long a broker may take to learn what the controller knows."""
_SHOWN_MAX: Final = 30
_RUNNING: Final = ["wait for them:  `caudal cluster reassign watch`", "or stop them:  `caudal cluster reassign cancel`"]

PlanOption = Annotated[bool, typer.Option("--plan", help="Only show what would move; -o json for `reassign run`.")]
BatchOption = Annotated[int, typer.Option("--batch", metavar="N", min=1, help="Partitions that move at a time.")]
FileArgument = Annotated[
    typer.FileText,
    typer.Argument(metavar="FILE", help="Moves, in the format of kafka-reassign-partitions.", show_default=False),
]


@app.command(epilog=examples("caudal cluster drain 3", "caudal cluster drain 3 --plan"))
def drain(
    cluster: ClusterOptions,
    broker: BrokerArgument,
    *,
    plan: PlanOption = False,
    allow_fewer: Annotated[
        bool,
        typer.Option("--allow-fewer-replicas", help="Partitions keep one replica fewer if no other broker is free."),
    ] = False,
    batch: BatchOption = 20,
    throttle: ThrottleOption = None,
    output: OutputOption = Output.TABLE,
) -> None:
    """Move all replicas of a broker to the others, before it is stopped for good."""
    from deploy.views.replica_plan import plan_drain

    client = cluster.admin()
    with waiting(f"asking {cluster.bootstrap}"):
        brokers, topics = client.maintenance.registered_brokers(), client.all_topics()
        _refuse_while_moving(client)
    if broker not in {item.id for item in brokers}:
        known = ", ".join(str(item.id) for item in brokers)
        failure(f"there is no broker {broker}; the cluster has {known}", ["see all:  `caudal cluster`"])
        raise typer.Exit(1)
    planned = plan_drain(topics, brokers, broker, allow_fewer=allow_fewer)
    if planned.crowded and not plan:
        _print_names("Cannot leave", planned.crowded)
        failure(
            f"no other live broker is free for {plural(len(planned.crowded), 'partition')}, so nothing was moved",
            [
                "add a broker, which gives them a place",
                f"or accept fewer replicas:  `caudal cluster drain {broker} --allow-fewer-replicas`",
            ],
        )
        raise typer.Exit(1)
    _carry_out(client, planned, plan_only=plan, batch=batch, throttle=throttle, output=output)
    if output is Output.TABLE and not plan:
        done(f"broker [bold]{broker}[/] holds no replicas")
        note(f"stop it, then:  caudal cluster unregister {broker}")


@app.command(
    epilog=examples(
        "caudal cluster grow                      internal topics, to 3 replicas or as many as there are brokers",
        "caudal cluster grow --topic orders --replicas 3",
        "caudal cluster grow --all",
    )
)
def grow(
    cluster: ClusterOptions,
    *,
    replicas: Annotated[
        int | None,
        typer.Option("--replicas", "-r", min=1, help="Copies of each partition.", show_default="3, if so many brokers"),
    ] = None,
    topic: TopicsOption = None,
    everything: Annotated[bool, typer.Option("--all", "-a", help="All topics, not only the internal ones.")] = False,
    plan: PlanOption = False,
    batch: BatchOption = 20,
    throttle: ThrottleOption = None,
    output: OutputOption = Output.TABLE,
) -> None:
    """Give topics more replicas after brokers have joined: the internal ones, and those you name."""
    from deploy.views.replica_plan import plan_growth

    client = cluster.admin()
    with waiting(f"asking {cluster.bootstrap}"):
        brokers, topics = client.maintenance.registered_brokers(), client.all_topics()
        _refuse_while_moving(client)
    live = sum(not item.is_fenced for item in brokers)
    factor = min(REPLICAS_WANTED, live) if replicas is None else replicas
    if factor > live:
        failure(
            f"{factor} replicas need {factor} live brokers, and the cluster has {live}",
            ["start more brokers", f"or ask for fewer:  `--replicas {live}`"],
        )
        raise typer.Exit(1)
    if unknown := set(topic or ()) - {item.name for item in topics}:
        failure(f"there is no topic {min(unknown)}", ["see what there is:  `caudal topic list --all`"])
        raise typer.Exit(1)
    chosen = [item for item in topics if everything or item.is_internal or item.name in (topic or ())]
    planned = plan_growth(chosen, brokers, factor)
    _carry_out(client, planned, plan_only=plan, batch=batch, throttle=throttle, output=output)
    if output is Output.TABLE and not plan:
        done(f"{plural(len(chosen), 'topic')} with at least {plural(factor, 'replica')}")
        _advise_minimum(client, chosen, factor)
        _advise_rest([item for item in topics if item not in chosen], factor)


@reassign_app.command(
    name="plan",
    epilog=examples(
        "caudal cluster reassign plan > moves.json          evenly over all live brokers",
        "caudal cluster reassign plan --onto 1,2,4 --topic orders",
    ),
)
def plan_moves(
    cluster: ClusterOptions,
    *,
    topic: TopicsOption = None,
    onto: Annotated[
        str | None, typer.Option("--onto", metavar="ID,ID...", help="Only these brokers.", show_default="all live ones")
    ] = None,
    output: OutputOption = Output.JSON,
) -> None:
    """Print moves that spread replicas and leaders evenly, with as few moves as possible."""
    from deploy.views.replica_plan import plan_balance, plan_document

    client = cluster.admin()
    with waiting(f"asking {cluster.bootstrap}"):
        brokers = client.maintenance.registered_brokers()
        topics = client.topics(topic) if topic else client.all_topics()
    live = {item.id for item in brokers if not item.is_fenced}
    try:
        wanted = live if onto is None else {int(item) for item in onto.split(",")}
    except ValueError:
        raise typer.BadParameter("must be ids of brokers, such as 1,2,3", param_hint="--onto") from None
    if missing := wanted - live:
        failure(f"broker {min(missing)} is not live", ["see all:  `caudal cluster`"])
        raise typer.Exit(1)
    planned = plan_balance(topics, brokers, onto=wanted)
    _report_impossible(planned)
    if output is Output.JSON:
        print_json(plan_document(planned.assignment))
    else:
        _print_moves("Moves", planned.moves)
    if not planned.moves:
        note("replicas and leaders are spread evenly already")


@reassign_app.command(
    epilog=examples(
        "caudal cluster reassign run moves.json",
        "caudal cluster reassign run moves.json --throttle 10000000",
        "caudal cluster reassign plan | caudal cluster reassign run -",
    )
)
def run(
    cluster: ClusterOptions,
    file: FileArgument,
    *,
    batch: BatchOption = 20,
    throttle: ThrottleOption = None,
    output: OutputOption = Output.TABLE,
) -> None:
    """Move the partitions of a file to its brokers, and wait until they are there."""
    from deploy.views.replica_plan import Plan, moves_of

    assignment = _read(file)
    client = cluster.admin()
    with waiting(f"asking {cluster.bootstrap}"):
        topics = client.all_topics()
    moves, unknown = moves_of(assignment, topics)
    if unknown:
        _print_names("Unknown", unknown)
        failure("nothing was moved: the cluster has no such partitions", ["correct the file"])
        raise typer.Exit(1)
    _carry_out(client, Plan(moves), plan_only=False, batch=batch, throttle=throttle, output=output)


@reassign_app.command(epilog=examples("caudal cluster reassign watch"))
def watch(cluster: ClusterOptions, *, output: OutputOption = Output.TABLE) -> None:
    """Wait until all moves are finished, including those of others; then remove limits of --throttle that are left."""
    client = cluster.admin()
    with waiting(f"asking {cluster.bootstrap}"):
        moving = [_move(item) for item in client.reassignments()]
    with progress() as bar, _going_on():
        task = bar.add_task("moving", total=len(moving))
        for left in _watch(client, moving, bar, task):
            bar.update(task, completed=len(moving) - len(left))
    remove_leftovers(client)
    if output is Output.JSON:
        print_json({"finished": [{"topic": move.topic, "partition": move.partition} for move in moving]})
    else:
        done(f"{plural(len(moving), 'move')} finished" if moving else "nothing is moving")


@reassign_app.command(epilog=examples("caudal cluster reassign cancel", "caudal cluster reassign cancel moves.json"))
def cancel(
    cluster: ClusterOptions,
    file: Annotated[
        typer.FileText | None,
        typer.Argument(metavar="[FILE]", help="Only the moves of this file.", show_default="all"),
    ] = None,
    *,
    yes: YesOption = False,
    output: OutputOption = Output.TABLE,
) -> None:
    """Stop moves that are not finished; their partitions keep the replicas they had before.

    Limits of --throttle are removed once nothing moves.
    """
    chosen = None if file is None else set(_read(file))
    client = cluster.admin()
    with waiting(f"asking {cluster.bootstrap}"):
        moving = [(item.topic, item.partition) for item in client.reassignments()]
    wanted = [name for name in moving if chosen is None or name in chosen]
    if wanted and not yes:
        typer.confirm(f"Cancel {plural(len(wanted), 'move')}?", abort=True, err=True)
    outcome = client.maintenance.reassign(dict.fromkeys(wanted)) if wanted else {}
    remove_leftovers(client)
    failed = {name: error for name, error in outcome.items() if error is not None}
    if output is Output.JSON:
        print_json(
            [
                {"topic": topic, "partition": partition, "error": None if error is None else str(error)}
                for (topic, partition), error in outcome.items()
            ]
        )
    else:
        done(f"{plural(len(outcome) - len(failed), 'move')} cancelled" if wanted else "nothing is moving")
        _report_failed(failed)
    if failed:
        raise typer.Exit(1)


def print_reassignments(found: "Iterable[Reassignment]") -> None:
    """Print the moves in progress."""
    rows = [
        (item.topic, str(item.partition), _ids(item.replicas), _ids(item.adding), _ids(item.removing)) for item in found
    ]
    table("Moving", ["Topic", "Partition #", "Replicas", "Adding", "Removing"], rows)


# --- carrying out ---


def _carry_out(
    client: "Admin", planned: "Plan", *, plan_only: bool, batch: int, throttle: int | None, output: Output
) -> None:
    """Print a plan, or run it and wait until it is done; raises Exit when something could not be moved."""
    from deploy.views.replica_plan import plan_document

    _report_impossible(planned)
    if plan_only:
        if output is Output.JSON:
            print_json(plan_document(planned.assignment))
        else:
            _print_moves("Moves", planned.moves)
        return
    with throttled(client, planned.moves, throttle):
        failed = _run(client, planned.moves, batch)
    if output is Output.JSON:
        left = {(topic, partition): str(error) for (topic, partition), error in failed.items()}
        before = {(move.topic, move.partition): move.before for move in planned.moves}
        print_json(
            {
                "moved": [move for move in planned.moves if (move.topic, move.partition) not in failed],
                "failed": [{"topic": topic, "partition": part, "error": text} for (topic, part), text in left.items()],
                "offline": [{"topic": topic, "partition": partition} for topic, partition in planned.offline],
                "previous": plan_document(before),
            }
        )
    else:
        done(f"{plural(len(planned.moves) - len(failed), 'partition')} moved")
        _report_failed(failed)
    if failed or planned.offline:
        raise typer.Exit(1)


def _run(client: "Admin", moves: "Sequence[Move]", batch: int) -> "dict[TopicPartition, object]":
    """Move partitions, some at a time; returns those that did not arrive, and why."""
    failed: dict[TopicPartition, object] = {}
    with progress() as bar, _going_on():
        task = bar.add_task("moving", total=len(moves))
        for start in range(0, len(moves), batch):
            wanted = {(move.topic, move.partition): move for move in moves[start : start + batch]}
            outcome = client.maintenance.reassign({name: move.after for name, move in wanted.items()})
            failed |= {name: error for name, error in outcome.items() if error is not None}
            begun = [move for name, move in wanted.items() if name not in failed]
            for left in _watch(client, begun, bar, task):
                bar.update(task, completed=start + len(wanted) - len(left))
    for name in _not_arrived(client, [move for move in moves if (move.topic, move.partition) not in failed]):
        failed[name] = "cancelled, or changed again, by another request"
    return failed


def _not_arrived(client: "Admin", moves: "Sequence[Move]") -> "list[TopicPartition]":
    """Partitions that are not on their new brokers, although nothing moves any more."""
    ends_at = time.monotonic() + _METADATA_S
    while True:
        found = {(topic.name, item.index): item.replicas for topic in client.all_topics() for item in topic.partitions}
        names = [(move.topic, move.partition) for move in moves]
        missing = [name for name, move in zip(names, moves, strict=True) if set(found.get(name, ())) != set(move.after)]
        if not missing or time.monotonic() > ends_at:
            return missing
        time.sleep(_LOOK_S)


def _watch(
    client: "Admin", moves: "Sequence[Move]", bar: "Progress", task: "TaskID"
) -> "Iterator[set[TopicPartition]]":
    """Which of these partitions are still moving, until there are none; the bar shows how much has been copied."""
    from core_broker.client.errors import Retriable, Unreachable

    left, failures = {(move.topic, move.partition) for move in moves}, 0
    for look in count():
        if not left:
            return
        try:
            left &= {(item.topic, item.partition) for item in client.reassignments()}
            if look % _LOOKS_PER_MEASUREMENT == 1 and not bar.disable:
                bar.update(task, description=_describe_copies(client, moves))
            failures = 0
        except (Unreachable, Retriable):
            failures += 1
            if failures == _FAILED_LOOKS_MAX:
                raise
        yield left
        if left:
            time.sleep(_LOOK_S)


def _describe_copies(client: "Admin", moves: "Sequence[Move]") -> str:
    from deploy.views.cluster import replica_sizes
    from deploy.views.replica_plan import bytes_copied

    copied, total = bytes_copied(moves, replica_sizes(client))
    return f"moving, {size(copied)} of {size(total)}"


def _move(item: "Reassignment") -> "Move":
    from deploy.views.replica_plan import Move

    before = tuple(broker for broker in item.replicas if broker not in item.adding)
    after = tuple(broker for broker in item.replicas if broker not in item.removing)
    return Move(item.topic, item.partition, before, after)


@contextmanager
def _going_on() -> Iterator[None]:
    try:
        yield
    except KeyboardInterrupt:
        failure("what has begun to move goes on in the cluster", _RUNNING)
        raise


def _refuse_while_moving(client: "Admin") -> None:
    if moving := client.reassignments():
        failure(f"replicas are moving already, of {plural(len(moving), 'partition')}", _RUNNING)
        raise typer.Exit(1)


def _read(file: typer.FileText) -> "dict[TopicPartition, tuple[int, ...]]":
    from deploy.views.replica_plan import PlanFileError, read_plan

    try:
        return read_plan(file.read())
    except (PlanFileError, UnicodeDecodeError) as error:
        failure(
            f"{Path(file.name).name} does not list moves: {error}",
            ["make one:  `caudal cluster reassign plan > moves.json`"],
        )
        raise typer.Exit(1) from None


# --- reporting ---


def _report_impossible(planned: "Plan") -> None:
    if planned.offline:
        _print_names("Offline", planned.offline)
        failure(
            f"{plural(len(planned.offline), 'partition')} without a leader to copy from cannot be moved",
            ["start the brokers of their replicas", "or accept loss:  `caudal cluster elect --unclean`"],
        )
    if planned.crowded:
        _print_names("No other broker is free", planned.crowded)


def _report_failed(failed: "Mapping[TopicPartition, object]") -> None:
    if failed:
        rows = [(topic, str(partition), str(error)) for (topic, partition), error in failed.items()]
        table("Failed", ["Topic", "Partition #", "Reason"], rows)


def _print_moves(title: str, moves: "Sequence[Move]") -> None:
    rows = [(move.topic, str(move.partition), _ids(move.before), _ids(move.after)) for move in moves]
    table(f"{title}: {len(moves)}", ["Topic", "Partition #", "From", "To"], rows)


def _print_names(title: str, names: "Sequence[TopicPartition]") -> None:
    shown = ", ".join(f"{topic}-{partition}" for topic, partition in names[:_SHOWN_MAX])
    more = f" and {len(names) - _SHOWN_MAX} more" if len(names) > _SHOWN_MAX else ""
    note(f"{title}: {shown}{more}")


def _advise_minimum(client: "Admin", topics: "Sequence[Topic]", factor: int) -> None:
    """Say which topics acknowledge writes that only one replica has, although they have three."""
    from deploy.views.topics import MIN_IN_SYNC

    if factor < REPLICAS_WANTED:
        return
    for name, configs in client.configs_of_topics([topic.name for topic in topics]).items():
        if any(config.key == MIN_IN_SYNC and config.value == "1" for config in configs):
            note(f"{name} still acknowledges what one replica has:  caudal topic alter {name} -c {MIN_IN_SYNC}=2")


def _advise_rest(topics: "Sequence[Topic]", factor: int) -> None:
    """Say which topics could still be lost with one broker: those in which Connect keeps its state, for example."""
    small = [topic.name for topic in topics if any(len(item.replicas) < factor for item in topic.partitions)]
    if small:
        shown = ", ".join(small[:_NAMED_MAX]) + (", ..." if len(small) > _NAMED_MAX else "")
        note(f"{plural(len(small), 'topic')} still with fewer ({shown}):  caudal cluster grow --all")


def _ids(brokers: Iterable[int]) -> str:
    return ",".join(map(str, brokers))
