"""`caudal topic`: create, look at, change and delete topics."""

import sys
from contextlib import suppress
from typing import TYPE_CHECKING, Annotated

import typer

from deploy.commands import completion
from deploy.commands.options import ClusterOptions, Commands, Output, OutputOption, TopicArgument, YesOption
from deploy.commands.topic import consume, produce
from deploy.terminal.output import done, examples, facts, failure, note, print_json, report_deleted, table, waiting

if TYPE_CHECKING:
    from core_broker.client.admin import Admin

app = Commands(no_args_is_help=True, help="Topics: create, list, describe, alter, delete, produce, consume.")

ConfigsOption = Annotated[
    list[str] | None,
    typer.Option(
        "--config",
        "-c",
        metavar="KEY=VALUE",
        help="A config of the topic. Repeat it for more.",
        autocompletion=completion.topic_configs,
    ),
]


@app.command(
    epilog=examples(
        "caudal topic create orders --partitions 6 --replicas 3",
        "caudal topic create users -c cleanup.policy=compact -c min.cleanable.dirty.ratio=0.1",
    )
)
def create(
    cluster: ClusterOptions,
    name: Annotated[str, typer.Argument(metavar="TOPIC", help="Name of the topic.", show_default=False)],
    *,
    partitions: Annotated[
        int, typer.Option("--partitions", "-p", help="Number of partitions.", show_default="the cluster's")
    ] = -1,
    replicas: Annotated[
        int,
        typer.Option(
            "--replicas", "-r", help="Copies of each partition, each on another broker.", show_default="the cluster's"
        ),
    ] = -1,
    config: ConfigsOption = None,
    if_not_exists: Annotated[bool, typer.Option("--if-not-exists", help="Succeed if it exists already.")] = False,
) -> None:
    """Create a topic."""
    from core_broker.client.errors import AlreadyExists
    from core_broker.service.properties import from_assignments
    from deploy.views.topics import DEFAULT_REPLICAS, MIN_IN_SYNC, explain_replicas

    configs = from_assignments(config or [])
    client = cluster.admin()
    with waiting(f"asking {cluster.bootstrap}"):
        brokers = [broker.id for broker in client.cluster().brokers]
        defaults = _replica_defaults(client, brokers)
    if replicas < 0 and defaults and sys.stdin.isatty() and sys.stderr.isatty():
        text = f"Copies of each partition, on different brokers ({len(brokers)} are live)"
        replicas = typer.prompt(text, type=int, default=int(defaults[DEFAULT_REPLICAS]), err=True)
    if replicas > len(brokers):
        failure(
            f"{replicas} replicas need {replicas} live brokers, and the cluster has {len(brokers)}",
            [f"ask for fewer:  `--replicas {len(brokers)}`", "or start more brokers first"],
        )
        raise typer.Exit(1)
    try:
        with waiting(f"creating {name}"):
            client.create_topic(name, partitions=partitions, replication_factor=replicas, configs=configs)
    except AlreadyExists:
        if not if_not_exists:
            raise
        done(f"topic [bold]{name}[/] exists already")
        return
    done(f"topic [bold]{name}[/] created")
    if defaults:
        factor = replicas if replicas > 0 else int(defaults[DEFAULT_REPLICAS])
        minimum = int(configs.get(MIN_IN_SYNC, defaults[MIN_IN_SYNC]))
        note(explain_replicas(name, factor, minimum=minimum))


def _replica_defaults(client: "Admin", brokers: list[int]) -> dict[str, str]:
    """The replicas and in-sync replicas of new topics; nothing for one broker, or if the cluster does not say."""
    from core_broker.client.errors import ClientError
    from deploy.views.topics import DEFAULT_REPLICAS, MIN_IN_SYNC

    if len(brokers) > 1:
        with suppress(ClientError):
            configs = client.configs_of_brokers(brokers[:1])[brokers[0]]
            found = {item.key: item.value for item in configs if item.key in (DEFAULT_REPLICAS, MIN_IN_SYNC)}
            return {key: value for key, value in found.items() if value} if len(found) == 2 else {}
    return {}


@app.command(name="list", epilog=examples("caudal topic list", "caudal topic list --all -o json"))
def list_(
    cluster: ClusterOptions,
    *,
    internal: Annotated[bool, typer.Option("--all", "-a", help="Show the cluster's own topics too.")] = False,
    output: OutputOption = Output.TABLE,
) -> None:
    """List the topics, their partitions and how many records they hold."""
    from deploy.views.topics import list_topics

    client = cluster.admin()
    with waiting("asking the cluster"):
        found = list_topics(client, internal=internal)
    if output is Output.JSON:
        print_json(found)
    elif found:
        table(
            "", ["Topic", "Partitions #", "Records #"], [(item.topic, item.partitions, item.records) for item in found]
        )
    else:
        note("no topics yet; create one:  caudal topic create NAME")


@app.command(epilog=examples("caudal topic describe orders", "caudal topic describe orders --configs -o json"))
def describe(
    cluster: ClusterOptions,
    name: TopicArgument,
    *,
    all_configs: Annotated[
        bool, typer.Option("--configs", help="Show all configs, not only those that are set.")
    ] = False,
    output: OutputOption = Output.TABLE,
) -> None:
    """Show partitions, leaders, offsets and configs of a topic."""
    from deploy.views.topics import describe_topic

    client = cluster.admin()
    with waiting(f"asking about {name}"):
        topic = describe_topic(client, name, all_configs=all_configs)
    if output is Output.JSON:
        print_json(topic)
        return
    facts(f"Topic {topic.topic}", [("id", topic.id), ("internal", "yes" if topic.internal else "no")])
    rows = [
        (
            str(item.partition),
            str(item.leader),
            ",".join(map(str, item.replicas)),
            ",".join(map(str, item.isr)),
            item.earliest,
            item.latest,
            item.latest - item.earliest,
        )
        for item in topic.partitions
    ]
    table("", ["Partition #", "Leader #", "Replicas", "In sync", "First offset #", "End offset #", "Records #"], rows)
    if topic.configs:
        table("Configs", ["Key", "Value"], [(key, value or "") for key, value in topic.configs.items()])


@app.command(
    epilog=examples(
        "caudal topic alter orders --partitions 12",
        "caudal topic alter orders -c retention.ms=3600000 --unset cleanup.policy",
    )
)
def alter(
    cluster: ClusterOptions,
    name: TopicArgument,
    *,
    partitions: Annotated[
        int | None, typer.Option("--partitions", "-p", help="Grow to this many partitions.", show_default=False)
    ] = None,
    config: ConfigsOption = None,
    unset: Annotated[
        list[str] | None,
        typer.Option(
            "--unset",
            metavar="KEY",
            help="Return a config to its default.",
            autocompletion=completion.topic_config_names,
        ),
    ] = None,
) -> None:
    """Give a topic more partitions, or change its configs."""
    from core_broker.service.properties import from_assignments

    changes = from_assignments(config or [])
    if partitions is None and not changes and not unset:
        raise typer.BadParameter("say what to change: --partitions, --config or --unset")
    client = cluster.admin()
    with waiting(f"changing {name}"):
        if changes or unset:
            client.alter_configs(name, put=changes, remove=unset or [])
        if partitions is not None:
            client.grow_topic(name, partitions)
    done(f"topic [bold]{name}[/] changed")


@app.command(epilog=examples("caudal topic delete orders", "caudal topic delete old-1 old-2 --yes"))
def delete(
    cluster: ClusterOptions,
    names: Annotated[
        list[str],
        typer.Argument(
            metavar="TOPIC...", help="Topics to delete.", show_default=False, autocompletion=completion.topics
        ),
    ],
    *,
    yes: YesOption = False,
) -> None:
    """Delete topics with all their records."""
    from deploy.clients.failures import refusal_among

    if not yes:
        typer.confirm(f"Delete {', '.join(names)} with all records?", abort=True, err=True)
    client = cluster.admin()
    with waiting("deleting"):
        outcome = client.delete_topics(names)
    if not report_deleted("topic", outcome):
        raise refusal_among(outcome.values()) or typer.Exit(1)


app.add_typer(produce.app)
app.add_typer(consume.app)
