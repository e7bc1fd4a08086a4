"""The service: everything that the REST API does, without HTTP. All calls block, and threads may share it."""

import logging
import socket
import threading
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Final
from urllib.parse import urlsplit

from core_broker.client.errors import ClientError
from core_broker.service.clock import SystemClock
from streams.catalog.errors import LogProblem
from streams.catalog.log import DefinitionLog
from streams.catalog.state import Change
from streams.formats.registry import RegistrySettings, Schemas
from streams.functions.user import describe as describe_functions
from streams.materialized.copies import Copies
from streams.model.plan import Query, QueryPlan
from streams.server.catalog import Catalog
from streams.server.changing import Changer
from streams.server.chores import Chores
from streams.server.commands import Commands
from streams.server.connectors import Connectors
from streams.server.copying import CopyKeeper
from streams.server.describing import Describer
from streams.server.engine import EngineDoor
from streams.server.errors import JSON, NotReady
from streams.server.executing import Executor
from streams.server.inserts import Inserter
from streams.server.ownership import Ownership, server_id
from streams.server.preparing import Surroundings, options_of
from streams.server.progress import QueryProgress, progress_of
from streams.server.properties import resolve_all
from streams.server.read_only import ReadOnlyStatements
from streams.server.runner import QueryRunner, Run
from streams.server.showing import Shower
from streams.server.topics import Topics
from streams.server.transient import OpenQueries
from streams.settings import StreamsSettings
from streams.spark.queries.spec import QuerySpec
from streams.sql.analysis.facts import Facts, Options
from streams.sql.functions.user import user_functions

log = logging.getLogger(__name__)

API_VERSION: Final = "8.0.0"
"""The version of ksqlDB that the API is like: clients look at it."""
_RETRY_SECONDS: Final = 2.0
_HEALTH_MS: Final = 5000
_DOWN_SECONDS: Final = 0.1


class Service:
    """One server of the service. `start` before anything else, `close` at the end."""

    def __init__(self, settings: StreamsSettings, *, on_progress: Callable[[str], None] = lambda _: None) -> None:
        kafka = settings.kafka()
        prefix = f"_streams-{settings.ksql_service_id}"
        registry = RegistrySettings(url=settings.registry_url, properties=settings.registry_properties)
        self.settings = settings
        self.host = host_of(settings)
        """`host:port` of this server, as states of queries show it."""
        self.catalog = Catalog()
        self.schemas = Schemas(registry)
        self.topics = Topics(kafka, hidden=settings.ksql_hidden_topics, read_only=settings.ksql_readonly_topics)
        self.engine = EngineDoor(
            settings.spark,
            cluster=settings.cluster(),
            registry=registry,
            extensions=settings.extensions,
            on_progress=on_progress,
        )
        self.copies = Copies(settings.state_folder / "copies", settings.cluster(), self.schemas)
        self.inserter = Inserter(kafka, self.schemas)
        self.open_queries = OpenQueries(push_max=settings.ksql_max_push_queries)
        """The queries of clients; SHOW QUERIES lists them, TERMINATE ends them."""
        self.connectors = Connectors(settings.ksql_connect_url)
        self._registry = registry
        self._health = Topics(replace(kafka, timeout_ms=_HEALTH_MS))
        self._commands = Commands()
        self._is_ready = False
        self._closing = threading.Event()
        self._definitions = DefinitionLog(
            kafka,
            self.catalog,
            topic=f"{prefix}definitions",
            replicas=settings.ksql_internal_topic_replicas,
            on_change=self._on_change,
            on_command=self._commands.note,
        )
        self._changer = Changer(self._definitions, self.catalog, self.topics, self.schemas)
        settings.state_folder.mkdir(parents=True, exist_ok=True)
        self._ownership = Ownership(
            settings.kafka(f"caudal-streams-{self.host}"),
            group_id=f"{prefix}server",
            topic=f"{prefix}definitions",
            instance_id=server_id(settings.state_folder, self.host, SystemClock()),
            on_change=self._wake,
        )
        self._runner = self._make_runner()
        self._copy_keeper = CopyKeeper(self.copies, self.catalog.sources)
        self._executor = self._make_executor()

    def _make_runner(self) -> QueryRunner:
        chores = Chores(
            state=self.catalog,
            engine=self.engine,
            topics=self.topics,
            schemas=self.schemas,
            folder=self.settings.checkpoints,
            write=self._changer.write,
        )
        return QueryRunner(
            queries=self.catalog.queries,
            is_owner=lambda: self._ownership.is_owner,
            engine=self.engine,
            topics=self.topics,
            chores=chores,
            spec=self.spec,
        )

    def _make_executor(self) -> Executor:
        self._describer = Describer(
            catalog=self.catalog,
            topics=self.topics,
            engine=self.engine,
            host=self.host,
            run_of=self._runner.run_of,
            reported=lambda: self._runner.progress,
        )
        shower = Shower(
            settings=self.settings,
            catalog=self.catalog,
            topics=self.topics,
            open_queries=self.open_queries,
            describer=self._describer,
            run_of=self._runner.run_of,
        )
        read_only = ReadOnlyStatements(
            catalog=self.catalog,
            schemas=self.schemas,
            engine=self.engine,
            connectors=self.connectors,
            open_queries=self.open_queries,
            describer=self._describer,
            shower=shower,
        )
        return Executor(
            settings=self.settings,
            surround=self._surround,
            catalog=self.catalog,
            definitions=self._definitions,
            engine=self.engine,
            changer=self._changer,
            inserter=self.inserter,
            open_queries=self.open_queries,
            read_only=read_only,
        )

    # --- its life ---

    @property
    def is_ready(self) -> bool:
        """Whether the definitions have been read and statements are carried out."""
        return self._is_ready

    @property
    def runs_queries(self) -> bool:
        """Whether this is the server that runs the persistent queries."""
        return self._ownership.is_owner

    def start(self) -> None:
        """Read the definitions, and begin to follow them and to run queries; waits for a cluster that is not there."""
        if self.settings.extensions:
            self.catalog.know_functions(user_functions(describe_functions(self.settings.extensions)))
        while not self._closing.is_set():
            try:
                self._definitions.start()
                break
            except LogProblem as error:
                log.warning("the definitions cannot be read yet", extra={"error": str(error)})
                self._definitions.close()
                self._closing.wait(_RETRY_SECONDS)
        if self._closing.is_set():
            return
        self._copy_keeper.start()
        self._ownership.start()
        self._runner.start()
        self._is_ready = True
        log.info("the service is ready", extra={"queries": len(list(self.catalog.queries()))})

    def close(self) -> None:
        """Stop everything; queries go on on another server."""
        self._closing.set()
        self._is_ready = False
        self.open_queries.close_all()
        self._runner.close()
        self._ownership.close()
        self.engine.close()
        self.inserter.close()
        self._copy_keeper.close()
        self.copies.close()
        self._definitions.close()
        self.connectors.close()
        self.schemas.close()

    def _wake(self) -> None:
        self._runner.wake()

    def _on_change(self, _: Sequence[Change]) -> None:
        self._runner.wake()
        self._copy_keeper.wake()

    # --- statements ---

    def execute(
        self,
        text: str,
        *,
        properties: Mapping[str, object],
        variables: Mapping[str, str],
        sequence: int | None = None,
    ) -> list[JSON]:
        """Carry out statements, and return an entity for each that has one; raises ServiceError."""
        self._check_ready()
        overridden = resolve_all(properties, self.settings)
        return self._executor.execute(text, properties=overridden, variables=dict(variables), sequence=sequence)

    def effective(self, properties: Mapping[str, object]) -> dict[str, str]:
        """The properties of a request over those of the server, by the names that SET uses; checked."""
        return {**self.settings.defaults(), **resolve_all(properties, self.settings)}

    def options(self, properties: Mapping[str, str], *, query_id: str = "") -> Options:
        """The options of a plan, for properties as `effective` returns them."""
        return options_of(self.settings, properties, query_id)

    def facts(self) -> Facts:
        """What a plan has to know of the cluster."""
        return Facts(partitions=self.topics.partitions())

    def spec(self, query: Query, plan: QueryPlan) -> QuerySpec:
        """What the engine gets to run a plan of a persistent query."""
        own = query.properties.get("ksql.query.trigger.ms")
        return QuerySpec(
            plan=plan,
            generation=query.generation,
            cluster=self.settings.cluster(),
            registry=self._registry,
            folder=self.settings.checkpoints,
            extensions=self.settings.extensions,
            trigger_ms=int(own) if own else self.settings.ksql_query_trigger_ms,
        )

    def wait_for(self, sequence: int, timeout_seconds: float) -> bool:
        """Wait until a statement, by its commandSequenceNumber, has been read by this server."""
        return self._definitions.wait_for(sequence, timeout_seconds)

    def _surround(self, state: Catalog, overridden: Mapping[str, str]) -> Surroundings:
        return Surroundings(
            settings=self.settings,
            schemas=self.schemas,
            topics=self.topics,
            state=state,
            partitions=dict(self.topics.partitions()),
            properties={**self.settings.defaults(), **overridden},
            overridden=overridden,
            number=self._definitions.position,
        )

    def _check_ready(self) -> None:
        if self._closing.is_set():
            raise NotReady("The server is shutting down", code=50303)
        if not self._is_ready:
            raise NotReady("KSQL is not yet ready to serve requests: it is reading its definitions", code=50302)

    # --- what it knows ---

    def progress(self) -> dict[str, QueryProgress]:
        """The progress of persistent queries as the engine reported it last, by their ids; without their lags."""
        reported = self._runner.progress
        return {
            query.id: progress_of(query, self._runner.run_of(query.id), reported) for query in self.catalog.queries()
        }

    def run_of(self, query_id: str) -> Run | None:
        """How a persistent query is doing on this server; None if it does not run here."""
        return self._runner.run_of(query_id)

    def command_status(self, command_id: str) -> JSON:
        """The status of a statement: status, message, queryId."""
        return self._commands.status(command_id)

    def command_statuses(self) -> dict[str, str]:
        """The status of each of the latest statements."""
        return self._commands.statuses()

    def info(self) -> JSON:
        """What /info says."""
        try:
            cluster_id = self._health.admin.cluster().cluster_id
        except ClientError:
            cluster_id = ""
        return {
            "KsqlServerInfo": {
                "version": API_VERSION,
                "kafkaClusterId": cluster_id,
                "ksqlServiceId": self.settings.ksql_service_id,
                "serverStatus": "RUNNING" if self._is_ready else "INITIALIZING",
            }
        }

    def health(self) -> JSON:
        """What /healthcheck says."""
        try:
            self._health.admin.ping()
            is_reachable = True
        except ClientError:
            is_reachable = False
        details = {
            "metastore": {"isHealthy": self._is_ready},
            "kafka": {"isHealthy": is_reachable},
            "commandRunner": {"isHealthy": self._is_ready and self._definitions.problem is None},
        }
        is_healthy = all(one["isHealthy"] for one in details.values())
        return {"isHealthy": is_healthy, "details": details, "serverState": "READY" if self._is_ready else "STARTING"}


def host_of(settings: StreamsSettings) -> str:
    """The address of this server, without a scheme; one of its own if its port is not known yet."""
    url = urlsplit(settings.ksql_advertised_listener or settings.listeners[0])
    name = url.hostname or socket.gethostname()
    return f"{name}:{url.port or uuid.uuid4().hex[:8]}"
