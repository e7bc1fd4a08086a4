"""`caudal cluster`: what the cluster is made of."""

import typer

from deploy.commands.options import (
    DEFAULT_BOOTSTRAP,
    BootstrapOption,
    ClientConfigOption,
    Output,
    OutputOption,
    PropertiesOption,
    TimeoutOption,
    admin,
)
from deploy.terminal.output import facts, print_json, table, waiting

app = typer.Typer(no_args_is_help=True, help="The cluster: brokers, controller, size.")


@app.callback()
def cluster() -> None:
    """Make `info` a sub-command although it is the only one."""


@app.command(epilog="Examples:\n\ncaudal cluster info\n\ncaudal cluster info --bootstrap kafka.example:9092 -o json")
def info(
    *,
    output: OutputOption = Output.TABLE,
    bootstrap: BootstrapOption = DEFAULT_BOOTSTRAP,
    properties: PropertiesOption = None,
    client_config: ClientConfigOption = None,
    timeout: TimeoutOption = 10.0,
) -> None:
    """Show the cluster's id, its brokers, and how much it holds."""
    client = admin(bootstrap, properties, client_config, timeout)
    with waiting(f"asking {bootstrap}"):
        found = client.cluster()
        topics = client.topic_names()
        groups = client.groups()
    totals = {"topics": len(topics), "partitions": sum(topics.values()), "groups": len(groups)}
    if output is Output.JSON:
        brokers = list(found.brokers)
        print_json({"cluster_id": found.cluster_id, "controller": found.controller_id, "brokers": brokers, **totals})
        return
    facts(f"Cluster {found.cluster_id}", totals.items())
    rows = [
        (
            str(item.id),
            f"{item.host}:{item.port}",
            item.rack or "–",
            "controller" if item.id == found.controller_id else "",
        )
        for item in found.brokers
    ]
    table("Brokers", ["Id #", "Address", "Rack", "Role"], rows)
