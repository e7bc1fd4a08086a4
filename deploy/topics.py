"""`caudal topic`: create, look at, change and delete topics."""

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
    from core_broker.client.models import Config, Topic

app = typer.Typer(no_args_is_help=True, help="Topics: create, list, describe, alter, delete, produce, consume.")

NewNameArgument = Annotated[str, typer.Argument(metavar="TOPIC", help="Name of the topic.", show_default=False)]
NameArgument = Annotated[
    str,
    typer.Argument(metavar="TOPIC", help="Name of the topic.", show_default=False, autocompletion=values.topics),
]
ConfigsOption = Annotated[
    list[str] | None,
    typer.Option(
        "--config",
        "-c",
        metavar="KEY=VALUE",
        help="A config of the topic. Repeat it for more.",
        autocompletion=values.topic_configs,
    ),
]


@app.command(
    epilog="Examples:\n\n"
    "caudal topic create orders --partitions 6\n\n"
    "caudal topic create users -c cleanup.policy=compact -c min.cleanable.dirty.ratio=0.1"
)
def create(
    name: NewNameArgument,
    *,
    partitions: Annotated[
        int, typer.Option("--partitions", "-p", help="Number of partitions.", show_default="the cluster's")
    ] = -1,
    replicas: Annotated[
        int, typer.Option("--replicas", "-r", help="Copies of each partition.", show_default="the cluster's")
    ] = -1,
    config: ConfigsOption = None,
    if_not_exists: Annotated[bool, typer.Option("--if-not-exists", help="Be content if it exists.")] = False,
    bootstrap: BootstrapOption = DEFAULT_BOOTSTRAP,
    properties: PropertiesOption = None,
    client_config: ClientConfigOption = None,
    timeout: TimeoutOption = 10.0,
) -> None:
    """Create a topic."""
    from core_broker.client.admin import Admin
    from core_broker.client.errors import AlreadyExists
    from core_broker.service.properties import from_assignments
    from deploy.output import done, waiting

    admin = Admin(client_settings(bootstrap, properties, client_config, timeout))
    try:
        with waiting(f"creating {name}"):
            admin.create_topic(
                name, partitions=partitions, replication_factor=replicas, configs=from_assignments(config or [])
            )
    except AlreadyExists:
        if not if_not_exists:
            raise
        done(f"topic [bold]{name}[/] is there already")
        return
    done(f"topic [bold]{name}[/] created")


@app.command(name="list", epilog="Examples:\n\ncaudal topic list\n\ncaudal topic list --all -o json")
def list_topics(
    *,
    internal: Annotated[bool, typer.Option("--all", "-a", help="Show the cluster's own topics too.")] = False,
    output: OutputOption = Output.TABLE,
    bootstrap: BootstrapOption = DEFAULT_BOOTSTRAP,
    properties: PropertiesOption = None,
    client_config: ClientConfigOption = None,
    timeout: TimeoutOption = 10.0,
) -> None:
    """List the topics, their partitions and how many records they hold."""
    from core_broker.client.admin import Admin
    from deploy.output import note, print_json, table, waiting

    admin = Admin(client_settings(bootstrap, properties, client_config, timeout))
    with waiting("asking the cluster"):
        partitions = {
            name: count for name, count in sorted(admin.topic_names().items()) if internal or name[:2] != "__"
        }
        records = _record_counts(admin, partitions)
    rows = [(name, count, records[name]) for name, count in partitions.items()]
    if output is Output.JSON:
        print_json([{"topic": name, "partitions": count, "records": held} for name, count, held in rows])
    elif rows:
        table("", ["Topic", "Partitions #", "Records #"], rows)
    else:
        note("no topics yet; make one:  caudal topic create NAME")


@app.command(epilog="Examples:\n\ncaudal topic describe orders\n\ncaudal topic describe orders --configs -o json")
def describe(
    name: NameArgument,
    *,
    all_configs: Annotated[
        bool, typer.Option("--configs", help="Show all configs, not only those that are set.")
    ] = False,
    output: OutputOption = Output.TABLE,
    bootstrap: BootstrapOption = DEFAULT_BOOTSTRAP,
    properties: PropertiesOption = None,
    client_config: ClientConfigOption = None,
    timeout: TimeoutOption = 10.0,
) -> None:
    """Show partitions, leaders, offsets and configs of a topic."""
    from core_broker.client.admin import Admin
    from deploy.output import waiting

    admin = Admin(client_settings(bootstrap, properties, client_config, timeout))
    with waiting(f"asking about {name}"):
        topic = admin.topics([name])[0]
        configs = [config for config in admin.configs(name) if all_configs or not config.is_default]
        places = [(name, partition.index) for partition in topic.partitions]
        bounds = (admin.offsets(places, "earliest"), admin.offsets(places, "latest"))
    if output is Output.JSON:
        _describe_json(topic, configs, *bounds)
    else:
        _describe_table(topic, configs, *bounds)


@app.command(
    epilog="Examples:\n\n"
    "caudal topic alter orders --partitions 12\n\n"
    "caudal topic alter orders -c retention.ms=3600000 --unset cleanup.policy"
)
def alter(
    name: NameArgument,
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
            autocompletion=values.topic_config_names,
        ),
    ] = None,
    bootstrap: BootstrapOption = DEFAULT_BOOTSTRAP,
    properties: PropertiesOption = None,
    client_config: ClientConfigOption = None,
    timeout: TimeoutOption = 10.0,
) -> None:
    """Give a topic more partitions, or change its configs."""
    from core_broker.client.admin import Admin
    from core_broker.service.properties import from_assignments
    from deploy.output import done, waiting

    changes = from_assignments(config or [])
    if partitions is None and not changes and not unset:
        raise typer.BadParameter("say what to change: --partitions, --config or --unset")
    admin = Admin(client_settings(bootstrap, properties, client_config, timeout))
    with waiting(f"changing {name}"):
        if changes or unset:
            admin.alter_configs(name, put=changes, remove=unset or [])
        if partitions is not None:
            admin.grow_topic(name, partitions)
    done(f"topic [bold]{name}[/] changed")


@app.command(epilog="Examples:\n\ncaudal topic delete orders\n\ncaudal topic delete old-1 old-2 --yes")
def delete(
    names: Annotated[
        list[str],
        typer.Argument(metavar="TOPIC...", help="Topics to delete.", show_default=False, autocompletion=values.topics),
    ],
    *,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    bootstrap: BootstrapOption = DEFAULT_BOOTSTRAP,
    properties: PropertiesOption = None,
    client_config: ClientConfigOption = None,
    timeout: TimeoutOption = 10.0,
) -> None:
    """Delete topics with all their records."""
    from core_broker.client.admin import Admin
    from deploy.output import tell_deleted, waiting

    if not yes:
        typer.confirm(f"Delete {', '.join(names)} with all records?", abort=True, err=True)
    admin = Admin(client_settings(bootstrap, properties, client_config, timeout))
    with waiting("deleting"):
        outcome = admin.delete_topics(names)
    if not tell_deleted("topic", outcome):
        raise typer.Exit(1)


def _record_counts(admin: "Admin", partitions: dict[str, int]) -> dict[str, int]:
    places = [(name, index) for name, count in partitions.items() for index in range(count)]
    first, end = admin.offsets(places, "earliest"), admin.offsets(places, "latest")
    counts = dict.fromkeys(partitions, 0)
    for place in places:
        counts[place[0]] += end[place] - first[place]
    return counts


def _describe_json(topic: "Topic", configs: list["Config"], first: "dict[Place, int]", end: "dict[Place, int]") -> None:
    from deploy.output import print_json

    partitions = [
        {
            "partition": item.index,
            "leader": item.leader,
            "replicas": item.replicas,
            "isr": item.in_sync,
            "earliest": first[topic.name, item.index],
            "latest": end[topic.name, item.index],
        }
        for item in topic.partitions
    ]
    print_json(
        {
            "topic": topic.name,
            "id": topic.topic_id,
            "internal": topic.is_internal,
            "partitions": partitions,
            "configs": {config.key: config.value for config in configs},
        }
    )


def _describe_table(
    topic: "Topic", configs: list["Config"], first: "dict[Place, int]", end: "dict[Place, int]"
) -> None:
    from deploy.output import facts, table

    facts(f"Topic {topic.name}", [("id", topic.topic_id), ("internal", "yes" if topic.is_internal else "no")])
    rows = [
        (
            str(item.index),
            str(item.leader),
            ",".join(map(str, item.replicas)),
            ",".join(map(str, item.in_sync)),
            first[topic.name, item.index],
            end[topic.name, item.index],
            end[topic.name, item.index] - first[topic.name, item.index],
        )
        for item in topic.partitions
    ]
    table("", ["Partition #", "Leader #", "Replicas", "In sync", "First offset #", "End offset #", "Records #"], rows)
    if configs:
        table("Configs", ["Key", "Value"], [(config.key, config.value or "") for config in configs])
