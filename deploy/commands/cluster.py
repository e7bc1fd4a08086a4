"""`caudal cluster`: what the cluster is made of."""

from deploy.commands.options import ClusterOptions, Commands, Output, OutputOption
from deploy.terminal.output import examples, facts, print_json, table, waiting

app = Commands(no_args_is_help=True, help="The cluster: brokers, controller, size.")


@app.callback()
def cluster() -> None:
    """Make `info` a sub-command although it is the only one."""


@app.command(epilog=examples("caudal cluster info", "caudal cluster info --bootstrap kafka.example:9092 -o json"))
def info(cluster: ClusterOptions, *, output: OutputOption = Output.TABLE) -> None:
    """Show the cluster's id, its brokers, and how much it holds."""
    client = cluster.admin()
    with waiting(f"asking {cluster.bootstrap}"):
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
