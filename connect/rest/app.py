"""The HTTP application: every route of the REST API around one worker."""

from collections.abc import Iterable

from connect.rest import document
from connect.rest.forwarding import Leader, led_route, with_forwarded
from connect.rest.guard import Guard, require_rows
from connect.rest.routes import connectors, dry_run, offsets, states, worker
from connect.rest.routes import dead_letters as letter_routes
from connect.rest.routes import plugins as plugin_routes
from connect.runtime.configuration.config_providers import ConfigProviders
from connect.runtime.configuration.plugins import Plugins
from connect.runtime.dry_run import DryRun
from connect.runtime.errors import WorkerError
from connect.runtime.leading.access_rules import TopicRules
from connect.runtime.leading.supervisor import Supervisor
from connect.runtime.loggers import Loggers
from connect.runtime.redrive.box import DeadLetterBox
from connect.runtime.signatures import Signatures
from connect.settings import ConnectSettings
from core_broker.service.metrics import Collect, Family
from core_broker.service.web.app import create_app, with_limits
from core_broker.service.web.asgi import Application
from core_broker.service.web.counts import RequestCounts
from core_broker.service.web.paths import RawPaths
from core_broker.web_access import rules_api
from core_broker.web_access.callers import Caller
from core_broker.web_access.documented import add_access
from core_broker.web_access.login import Login
from core_broker.web_access.middleware import with_login
from core_broker.web_access.rules import ResourceType, Rules

_DESCRIPTION = """Runs connectors between Kafka and other systems: the REST API of Kafka Connect, and more.

A connector is a configuration: its class, its options, converters and transforms. Workers with the same `group.id`
share the work, and any of them takes requests. Error responses are
`{"error_code": 404, "message": "Connector orders not found"}`: the code is the HTTP status. Names in paths are
percent-encoded.
"""


def application(
    supervisor: Supervisor,
    *,
    settings: ConnectSettings,
    login: Login,
    plugins: Plugins,
    providers: ConfigProviders,
    collect: Collect,
    loggers: Loggers | None = None,
    dead_letters: DeadLetterBox | None = None,
    rules: Rules,
) -> Application:
    """The whole HTTP application; must be made inside the event loop that serves it.

    LookupError if there is a route without access rights.
    """
    counts = RequestCounts("caudal_connect")

    def collect_all() -> Iterable[Family]:
        yield from collect()
        yield from counts.families()
        yield from login.families()

    def note_change(caller: Caller, api: str, path: str) -> None:
        login.audit.changed_over_http(caller.principal, caller.host, api, resources=[path])

    guard = Guard(rules, on_change=note_change if login.is_required else None, open_paths=login.skip_paths)
    signatures = Signatures(lambda: supervisor.configs.session_keys) if login.is_required else None
    timeout_seconds = settings.rest_request_timeout_ms / 1000
    route_class = led_route(Leader(settings, signatures), timeout_seconds=timeout_seconds, guard=guard)
    app = create_app(
        title="Caudal Connect",
        description=_DESCRIPTION,
        error_type=WorkerError,
        collect=collect_all,
        route_class=route_class,
    )
    # Kafka Connect's own /health, below, replaces the common one.
    app.router.routes[:] = [route for route in app.router.routes if getattr(route, "path", None) != "/health"]
    trial = DryRun(plugins=plugins, providers=providers, settings=settings)
    routers = [
        worker.router(supervisor, route_class=route_class, loggers=loggers or Loggers(), settings=settings),
        connectors.router(supervisor, route_class=route_class),
        states.router(supervisor, route_class=route_class),
        offsets.router(supervisor, route_class=route_class),
        plugin_routes.router(plugins, route_class=route_class, providers=providers, settings=settings),
        dry_run.router(trial, route_class=route_class, plugins=plugins),
        rules_api.router(
            rules,
            TopicRules(supervisor),
            resource_types=(ResourceType.CONNECTOR, ResourceType.CONNECT),
            whole=ResourceType.CONNECT,
            audit=login.audit,
            route_class=route_class,
        ),
    ]
    if dead_letters is not None:
        routers.append(letter_routes.router(dead_letters, route_class=route_class))
    require_rows([app.router, *routers], route_class)
    for router in routers:
        app.include_router(router)
    document.describe(app)
    add_access(app, settings, forbidden_code=403)
    inner = with_limits(RawPaths(app), settings, counts)
    outer = with_login(inner, login, counts=counts)
    return outer if signatures is None else with_forwarded(inner, others=outer, signatures=signatures)
