"""Where rules are kept: those about Kafka's resources in the cluster, others in the registry and in Connect."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from core_broker.client.acls import (
    Acl,
    AclFilter,
    Operation,
    PatternType,
    Permission,
    ResourceType,
    ServiceAcl,
    ServiceResource,
)
from core_broker.client.errors import ClientError, Rejected
from deploy.clients.connect import ConnectCallError
from deploy.commands.options import ClusterOptions, OptionGroup, RegistryOptions, WorkerOptions, insecure_option
from deploy.terminal.output import note
from deploy.views import acls as view
from schema_registry.client.errors import ClientError as RegistryClientError

if TYPE_CHECKING:
    from core_broker.client.admin import Admin

_PANEL: Final = "Services"


@dataclass(frozen=True, kw_only=True)
class ServiceOptions(OptionGroup):
    """The registry and Connect, which have rules of their own; the login is that of the cluster."""

    registry: Annotated[
        str | None,
        typer.Option(
            "--registry",
            envvar="CAUDAL_REGISTRY",
            metavar="URL",
            help="Address of the registry, for --subject and --registry-wide.",
            show_default=False,
            rich_help_panel=_PANEL,
        ),
    ] = None
    registry_user: Annotated[
        str | None,
        typer.Option(
            "--registry-user",
            envvar="CAUDAL_REGISTRY_USER",
            metavar="NAME:PASSWORD",
            help="Credentials for the registry, if they are not those of the client file.",
            show_default=False,
            rich_help_panel=_PANEL,
        ),
    ] = None
    connect: Annotated[
        str | None,
        typer.Option(
            "--connect",
            envvar="CAUDAL_CONNECT",
            metavar="URL",
            help="Address of a Connect worker, for --connector and --connect-wide.",
            show_default=False,
            rich_help_panel=_PANEL,
        ),
    ] = None
    insecure_http: Annotated[bool, insecure_option(_PANEL)] = False


class Place(StrEnum):
    """What keeps rules."""

    CLUSTER = "cluster"
    REGISTRY = "registry"
    CONNECT = "Connect"


_PLACES: Final = {
    ServiceResource.SUBJECT: Place.REGISTRY,
    ServiceResource.REGISTRY: Place.REGISTRY,
    ServiceResource.CONNECTOR: Place.CONNECT,
    ServiceResource.CONNECT: Place.CONNECT,
}


def place_of(kind: view.Kind) -> Place:
    """Where the rules about a kind of resource are kept."""
    return _PLACES[kind] if isinstance(kind, ServiceResource) else Place.CLUSTER


class RulePlaces:
    """Reads and changes rules wherever they are kept; calls raise the errors of the clients."""

    def __init__(self, cluster: ClusterOptions, services: ServiceOptions) -> None:
        self._cluster = cluster
        self._services = services

    @cached_property
    def admin(self) -> "Admin":
        """A client of the cluster."""
        return self._cluster.admin()

    def read(self, places: Collection[Place]) -> list[view.AnyAcl]:
        """All rules of these places."""
        found: list[view.AnyAcl] = list(self.admin.security.acls(AclFilter())) if Place.CLUSTER in places else []
        for place in (Place.REGISTRY, Place.CONNECT):
            if place in places:
                found += self._of_service(place)
        return found

    def read_known(self) -> list[view.AnyAcl]:
        """All rules of the cluster, and those of services whose address is known; a failure of theirs is a remark."""
        found = self.read({Place.CLUSTER})
        target = self._cluster.target()
        for place, address in (
            (Place.REGISTRY, self._services.registry or target.registry),
            (Place.CONNECT, self._services.connect or target.connect),
        ):
            if address is None:
                continue
            try:
                found += self._of_service(place)
            except (ClientError, RegistryClientError, ConnectCallError) as error:
                note(f"without the rules of {place} at {address}: {error}")
        return found

    def affecting(self, resources: Iterable[view.Resource]) -> list[view.AnyAcl]:
        """The rules that apply to resources."""
        found: list[view.AnyAcl] = []
        for resource in resources:
            if isinstance(resource.kind, ResourceType):
                found += self.admin.security.acls(view.affecting(resource))
            else:
                listed = self._of_service(place_of(resource.kind))
                found += [acl for acl in listed if view.affects(acl, resource)]
        return found

    def add(self, acls: Sequence[view.AnyAcl]) -> None:
        """Add rules, each where it belongs."""
        if own := [acl for acl in acls if isinstance(acl, Acl)]:
            self.admin.security.create_acls(own)
        for place, listed in _by_service(acls):
            if place is Place.REGISTRY:
                with self._registry().client() as registry:
                    registry.add_access_rules([_as_json(acl) for acl in listed])
            else:
                with self._worker().client() as worker:
                    worker.add_access_rules([_as_json(acl) for acl in listed])

    def remove(self, acls: Sequence[view.AnyAcl]) -> None:
        """Remove rules, each where it is."""
        if own := [acl for acl in acls if isinstance(acl, Acl)]:
            self.admin.security.delete_acls(own)
        for place, listed in _by_service(acls):
            if place is Place.REGISTRY:
                with self._registry().client() as registry:
                    registry.remove_access_rules([_as_json(acl) for acl in listed])
            else:
                with self._worker().client() as worker:
                    worker.remove_access_rules([_as_json(acl) for acl in listed])

    def _of_service(self, place: Place) -> list[ServiceAcl]:
        if place is Place.REGISTRY:
            with self._registry().client() as registry:
                listed = registry.access_rules()
        else:
            with self._worker().client() as worker:
                listed = worker.access_rules()
        return sorted(map(_from_json, listed), key=_order)

    def _registry(self) -> RegistryOptions:
        return RegistryOptions(
            profile=self._cluster.profile,
            registry=self._services.registry,
            user=self._services.registry_user,
            properties=self._login_properties(),
            client_config=self._cluster.client_config,
            insecure_http=self._services.insecure_http,
            timeout=self._cluster.timeout,
        )

    def _worker(self) -> WorkerOptions:
        return WorkerOptions(
            profile=self._cluster.profile,
            connect=self._services.connect,
            properties=self._login_properties(),
            client_config=self._cluster.client_config,
            insecure_http=self._services.insecure_http,
            timeout=self._cluster.timeout,
        )

    def _login_properties(self) -> list[str]:
        """Those of the typed properties that the services understand."""
        from deploy.clients.connections import is_login_property

        return [given for given in self._cluster.properties or () if is_login_property(given.partition("=")[0].strip())]


def _by_service(acls: Iterable[view.AnyAcl]) -> list[tuple[Place, list[ServiceAcl]]]:
    listed = [acl for acl in acls if isinstance(acl, ServiceAcl)]
    places = {place: [acl for acl in listed if place_of(acl.resource_type) is place] for place in Place}
    return [(place, found) for place, found in places.items() if found]


def _as_json(acl: ServiceAcl) -> dict[str, Any]:
    return {
        "principal": acl.principal,
        "resource": acl.resource_name,
        "resource_type": acl.resource_type,
        "pattern_type": acl.pattern_type,
        "host": acl.host,
        "operation": acl.operation,
        "permission": acl.permission,
    }


def _from_json(rule: dict[str, Any]) -> ServiceAcl:
    try:
        return ServiceAcl(
            principal=str(rule["principal"]),
            resource_name=str(rule["resource"]),
            resource_type=ServiceResource(rule["resource_type"]),
            pattern_type=PatternType(rule["pattern_type"]),
            host=str(rule["host"]),
            operation=Operation(rule["operation"]),
            permission=Permission(rule["permission"]),
        )
    except (KeyError, ValueError) as error:
        raise Rejected(f"a rule of the service cannot be understood: {error}") from None


def _order(acl: ServiceAcl) -> tuple[object, ...]:
    kinds = list(ServiceResource)
    return (
        kinds.index(acl.resource_type),
        acl.resource_name,
        acl.pattern_type,
        acl.principal,
        acl.permission,
        acl.host,
        list(Operation).index(acl.operation),
    )
