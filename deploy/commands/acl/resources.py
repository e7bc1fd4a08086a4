"""Options that name what a rule is about."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Any

import typer

from core_broker.client.acls import ResourceType, ServiceResource
from deploy.commands import completion
from deploy.commands.options import OptionGroup
from deploy.views.acls import CLUSTER_NAME, WHOLE, Resource

_PANEL = "Resource"


def _name_option(name: str, what: str, **more: Any) -> Any:
    return typer.Option(
        name, metavar="NAME", help=f"{what}; * means all. Repeat it for more.", rich_help_panel=_PANEL, **more
    )


@dataclass(frozen=True, kw_only=True)
class ResourceOptions(OptionGroup):
    """What a rule is about."""

    topics: Annotated[list[str] | None, _name_option("--topic", "A topic", autocompletion=completion.topics)] = None
    groups: Annotated[list[str] | None, _name_option("--group", "A group", autocompletion=completion.groups)] = None
    transactional_ids: Annotated[list[str] | None, _name_option("--transactional-id", "A transactional id")] = None
    delegation_tokens: Annotated[list[str] | None, _name_option("--delegation-token", "The id of a token")] = None
    owners: Annotated[list[str] | None, _name_option("--token-owner", "User:NAME, whose tokens it is about")] = None
    whole_cluster: Annotated[
        bool, typer.Option("--cluster", help="The cluster as a whole.", rich_help_panel=_PANEL)
    ] = False
    subjects: Annotated[
        list[str] | None,
        _name_option("--subject", "A subject of the registry", autocompletion=completion.subjects_for_rules),
    ] = None
    whole_registry: Annotated[
        bool,
        typer.Option(
            "--registry-wide", help="The registry as a whole: its defaults and its rules.", rich_help_panel=_PANEL
        ),
    ] = False
    connectors: Annotated[
        list[str] | None, _name_option("--connector", "A connector", autocompletion=completion.connectors_for_rules)
    ] = None
    whole_connect: Annotated[
        bool,
        typer.Option(
            "--connect-wide", help="Connect as a whole: plugins, loggers and its rules.", rich_help_panel=_PANEL
        ),
    ] = False
    prefixed: Annotated[
        bool,
        typer.Option("--prefixed", help="The names are prefixes of what is meant.", rich_help_panel=_PANEL),
    ] = False

    def found(self) -> list[Resource]:
        """The resources that were named."""
        return list(self._found())

    def _found(self) -> Iterator[Resource]:
        for kind, names in (
            (ResourceType.TOPIC, self.topics),
            (ResourceType.GROUP, self.groups),
            (ResourceType.TRANSACTIONAL_ID, self.transactional_ids),
            (ResourceType.DELEGATION_TOKEN, self.delegation_tokens),
            (ResourceType.USER, self.owners),
            (ServiceResource.SUBJECT, self.subjects),
            (ServiceResource.CONNECTOR, self.connectors),
        ):
            for name in names or ():
                yield Resource(kind=kind, name=name, is_prefixed=self.prefixed)
        if self.whole_cluster:
            yield Resource(kind=ResourceType.CLUSTER, name=CLUSTER_NAME)
        for is_meant, kind in (
            (self.whole_registry, ServiceResource.REGISTRY),
            (self.whole_connect, ServiceResource.CONNECT),
        ):
            if is_meant:
                yield Resource(kind=kind, name=WHOLE[kind])
