"""The data of the running platform: the cluster, schemas, connectors, dead letters, and Spark."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

from deploy.doctor.finding import Context, Finding, note, ok, problem, warning
from deploy.stack import BROKER
from deploy.views.connectors import parts
from deploy.views.text import trace_summary

if TYPE_CHECKING:
    from core_broker.client.admin import Admin

_LETTERS_KEY: Final = "errors.deadletterqueue.topic.name"


def cluster(context: Context) -> Iterator[Finding]:
    """Does the broker serve a real client?"""
    from core_broker.client.errors import ClientError
    from deploy.views.cluster import describe_cluster
    from deploy.views.cluster_health import missing_brokers, troubles

    endpoint = _endpoint(context, "broker")
    if endpoint is None:
        return
    try:
        found = describe_cluster(_admin(endpoint, context))
    except ClientError as error:
        yield problem("Cluster", f"a client gets no answer at {endpoint}: {error}", "see why:  caudal logs broker")
        return
    listed = troubles(found)
    if not listed:
        yield ok("Cluster", f"{found.cluster_id} at {endpoint}: {found.topics} topics, {found.partitions} partitions")
    missing = ", ".join(str(broker.id) for broker in missing_brokers(found))
    for trouble in listed:
        text = f"without broker {missing}: {trouble.text}" if missing else trouble.text
        steps = [f"see all of it:  caudal cluster --bootstrap {endpoint}"] if trouble is listed[-1] else []
        yield (problem if trouble.is_outage else warning)("Cluster", text, *steps)


def registry(context: Context) -> Iterator[Finding]:
    """Does the registry find its schemas?"""
    from deploy.clients.registry import registry_client
    from schema_registry.client.errors import ClientError

    endpoint = _endpoint(context, "registry")
    if endpoint is None:
        return
    try:
        with registry_client(endpoint, None, None, context.client_config, timeout=context.answer_seconds) as client:
            subjects = client.subjects()
    except ClientError as error:
        yield problem("Schemas", f"the registry does not list them: {error}", "see why:  caudal logs registry")
    else:
        yield ok("Schemas", f"{len(subjects)} subjects at {endpoint}")


def connectors(context: Context) -> Iterator[Finding]:
    """Do all connectors and their tasks run?"""
    listed = list(_connectors(context))
    is_well = True
    for name, connector in listed:
        for title, part in parts(connector["status"]):
            subject = f"Connector: {name}" if title == "connector" else f"Connector: {name}, {title}"
            if part["state"] == "FAILED":
                is_well = False
                yield problem(
                    subject,
                    f"failed: {trace_summary(part.get('trace')) or 'the worker gives no reason'}",
                    f"see all of it:  caudal connector status {name} --trace",
                    f"when it is repaired:  caudal connector restart {name} --tasks --only-failed",
                )
            elif part["state"] == "UNASSIGNED":
                is_well = False
                yield warning(subject, "no worker runs it", "check whether a worker is missing")
    if listed and is_well:
        states = [connector["status"]["connector"]["state"] for _, connector in listed]
        counts = ", ".join(f"{states.count(state)} {state.lower()}" for state in sorted(set(states)))
        yield ok("Connectors", counts)


def dead_letters(context: Context) -> Iterator[Finding]:
    """Are there records that connectors could not process?"""
    from deploy.views.topics import record_counts

    endpoint = _endpoint(context, "broker")
    wanted = {name: topic for name, item in _connectors(context) if (topic := item["info"]["config"].get(_LETTERS_KEY))}
    if endpoint is None or not wanted:
        return
    admin = _admin(endpoint, context)
    counts = record_counts(
        admin, {name: count for name, count in admin.topic_names().items() if name in wanted.values()}
    )
    for name, topic in wanted.items():
        if counts.get(topic):
            step = f"see which, and why:  caudal dlq list {name}"
            yield note(f"Dead letters: {name}", f"{counts[topic]:,} in {topic}, including those sent again", step)


def queries(context: Context) -> Iterator[Finding]:
    """Do all queries of SQL run?"""
    from deploy.clients.connections import sql_client
    from deploy.clients.sql import Session, SqlCallError

    endpoint = _endpoint(context, "streams")
    if endpoint is None:
        return
    try:
        with sql_client(endpoint, None, context.client_config, timeout=context.answer_seconds) as client:
            answers = client.execute("SHOW QUERIES;", Session())
    except SqlCallError as error:
        yield problem("Queries", f"the service of SQL does not list them: {error}", "see why:  caudal logs streams")
        return
    listed = [query for answer in answers for query in answer.get("queries") or ()]
    failed = [query for query in listed if "ERROR" in (query.get("statusCount") or {query.get("state"): 1})]
    for query in failed:
        step = f"see why:  caudal sql -e 'EXPLAIN {query['id']};'"
        yield problem(f"Query: {query['id']}", "it fails, and is tried again", step)
    if not failed:
        yield ok("Queries", f"{len(listed)} at {endpoint}")


def spark(context: Context) -> Iterator[Finding]:
    """Does Spark run, and do its jobs?"""
    from streams.errors import EngineUnavailable
    from streams.settings import SparkSettings
    from streams.spark.engine.client import Engine
    from streams.spark.engine.folder import EngineFolder

    if context.platform is None or context.platform.spark is None:
        return
    settings = SparkSettings.parse({"spark.caudal.data.dir": context.platform.spark.data_dir})
    folder = EngineFolder(settings.data_dir)
    try:
        engine = Engine.running(settings)
    except EngineUnavailable as error:
        yield problem("Spark", str(error), f"see its log:  {folder.log}")
        return
    if engine is None:
        is_starting = folder.lock.exists() and folder.is_locked()
        yield note(
            "Spark", f"it starts or ends in {folder.path}" if is_starting else "does not run; starts on first use"
        )
        return
    with engine:
        info: dict[str, Any] = engine.call("info")
    yield ok("Spark", f"{info['spark_version']} on {info['master']}, process {info['pid']}, {info['connect_url']}")
    for name, job in sorted(info["jobs"].items()):
        if job["state"].lower() == "failed":
            yield problem(f"Spark: {name}", "its query has failed", f"see why:  caudal connector status {name} --trace")


def _connectors(context: Context) -> Iterator[tuple[str, dict[str, Any]]]:
    from deploy.clients.connections import connect_client

    endpoint = _endpoint(context, "connect")
    if endpoint is not None:
        with connect_client(endpoint, None, context.client_config, timeout=context.answer_seconds) as client:
            yield from sorted(client.connectors().items())


def _admin(endpoint: str, context: Context) -> "Admin":
    from core_broker.client.admin import Admin
    from deploy.clients.connections import client_settings

    return Admin(client_settings(endpoint, None, context.client_config, timeout=context.answer_seconds))


def _endpoint(context: Context, name: str) -> str | None:
    """The address of a service of the platform, or of the one it uses instead; None if there is neither."""
    platform = context.platform
    if platform is None:
        return None
    if name == BROKER.name:
        return platform.bootstrap
    service = platform.services.get(name)
    return service.endpoint if service else platform.elsewhere.get(name)
