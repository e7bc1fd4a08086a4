"""All settings of all services, and where to look for their readers."""

from collections.abc import Iterable
from functools import cache
from typing import Final

from connect.settings import ConnectSettings
from core_broker.client.settings import ClientSettings
from core_broker.service.settings import Settings
from core_broker.settings import BrokerSettings, GroupSettings, TopicSettings
from deploy.launcher.request import Request
from rest_proxy.settings import ProxySettings
from schema_registry.client.settings import RegistryClientSettings
from schema_registry.serdes.settings import SerializerSettings
from schema_registry.settings import RegistrySettings
from streams.settings import SparkSettings
from tests.project import setting_readers
from tests.project.setting_readers import Read

_ANY_SERVICE: Final = ("core_broker/service/settings.py", "core_broker/service/web/settings.py")
_WEB_SERVICE: Final = (
    *_ANY_SERVICE,
    "core_broker/settings/authorization.py",
    "core_broker/settings/sasl.py",
    "core_broker/web_access/settings.py",
)
_WEB: Final = (
    "core_broker/security/audit.py",
    "core_broker/security/sasl/",
    "core_broker/service/",
    "core_broker/web_access/",
)
_BROKER: Final = tuple(
    f"core_broker/{part}"
    for part in (
        "broker.py",
        "cluster/",
        "groups/",
        "handlers/",
        "log/",
        "peers/",
        "raft/",
        "schema_guard/",
        "security/",
        "server/",
        "service/commandline.py",
        "transactions/",
    )
)
"""Where settings of the broker are handed to; clients and web services have settings with some of the same names."""


def family(
    settings: type, defined_in: Iterable[str], read_in: Iterable[str], called: Iterable[str] = ()
) -> setting_readers.Settings:
    """A class of settings, and where to look for its readers."""
    if issubclass(settings, Settings):
        fields = tuple(definition.name for definition in settings.DEFINITIONS.values())
    else:
        fields = tuple(settings.__annotations__)
    return setting_readers.Settings(
        names=frozenset(ancestor.__name__ for ancestor in settings.__mro__ if ancestor not in (object, Settings)),
        fields=fields,
        defined_in=tuple(defined_in),
        read_in=tuple(read_in),
        called=frozenset({"settings", "_settings", *called}),
    )


FAMILIES: Final = {
    BrokerSettings: family(
        BrokerSettings, ["core_broker/settings/", *_ANY_SERVICE], _BROKER, ["in_force", "current_settings"]
    ),
    TopicSettings: family(TopicSettings, ["core_broker/settings/"], _BROKER),
    GroupSettings: family(GroupSettings, ["core_broker/settings/"], _BROKER, ["own"]),
    RegistrySettings: family(
        RegistrySettings, ["schema_registry/settings.py", *_WEB_SERVICE], ["schema_registry/", *_WEB]
    ),
    ProxySettings: family(ProxySettings, ["rest_proxy/settings.py", *_WEB_SERVICE], ["rest_proxy/", *_WEB]),
    ConnectSettings: family(ConnectSettings, ["connect/settings.py", *_WEB_SERVICE], ["connect/", *_WEB]),
    SparkSettings: family(SparkSettings, ["streams/settings.py"], ["streams/", "deploy/"]),
    ClientSettings: family(ClientSettings, ["core_broker/client/settings.py"], ["core_broker/client/"]),
    RegistryClientSettings: family(
        RegistryClientSettings, ["schema_registry/client/settings.py"], ["schema_registry/client/"]
    ),
    SerializerSettings: family(SerializerSettings, ["schema_registry/serdes/settings.py"], ["schema_registry/serdes/"]),
    Request: family(Request, ["deploy/launcher/request.py"], ["deploy/"], ["request", "asked"]),
}
OURS: Final = tuple(settings for settings in FAMILIES if issubclass(settings, Settings))

FIXED: Final[dict[str, tuple[type[Settings], str]]] = {
    "remote.storage.enable": (TopicSettings, "true"),
    "transaction.two.phase.commit.enable": (BrokerSettings, "true"),
}
"""Settings that are not read because every value is refused that would ask for something else; with such a value."""


@cache
def readers_of(family: setting_readers.Settings) -> dict[str, list[Read]]:
    """Those who read each field."""
    return family.readers()


def unread(settings: type) -> set[str]:
    """The fields that have no reader."""
    return {name for name, readers in readers_of(FAMILIES[settings]).items() if not readers}


def inherited() -> set[str]:
    """Fields of the broker's settings that topics and groups inherit: they are read as theirs."""
    return {
        synonym.replace(".", "_")
        for heir in (TopicSettings, GroupSettings)
        for definition in heir.DEFINITIONS.values()
        if definition.name not in unread(heir)
        for synonym in definition.synonyms
    }


def unexplained(settings: type) -> set[str]:
    """The fields that have no reader and do not say why."""
    names = unread(settings)
    if not issubclass(settings, Settings):
        return names
    excused = {d.name for d in settings.DEFINITIONS.values() if d.without_effect or d.key in FIXED}
    return names - excused - (inherited() if settings is BrokerSettings else set())
