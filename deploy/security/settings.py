"""The settings that secure a service of a platform, and those of them that are secrets."""

from collections.abc import Iterable, Mapping
from typing import Final

from deploy.security.folder import ADMIN, LAUNCHER, NODE, TOKEN_SECRET, SecurityFolder
from deploy.stack import BROKER, CERTIFICATES_LISTENER, CLIENTS_LISTENER, CONTROLLERS_LISTENER, kind_of

MECHANISM: Final = "SCRAM-SHA-512"
"""How the services log in, and how they check the passwords of their callers."""
MECHANISMS: Final = (MECHANISM, "SCRAM-SHA-256")
"""How users may log in: `caudal user create` gives them both."""
USERS: Final = ("rest-proxy", "connect", "streams")
"""Services that are users of the cluster. The registry keeps its schemas in a database, and is none."""
_TOKENS: Final = "sasl.oauthbearer.jwks.endpoint.url"
_NAMES: Final = "RULE:^CN=([A-Za-z0-9._-]+)$/$1/,DEFAULT"
"""A certificate with CN=shop is that of the user shop, as with a password."""
_SCRAM_MODULE: Final = "org.apache.kafka.common.security.scram.ScramLoginModule"


def secure_settings(
    folder: SecurityFolder, name: str, *, bootstrap: str, brokers: Iterable[str], given: Mapping[str, str]
) -> dict[str, str]:
    """What a service needs besides the addresses; none of it is a secret.

    `brokers` are the names of all brokers, and `given` are the settings of the request, which may ask for tokens.
    """
    if kind_of(name) is BROKER:
        return _of_broker(folder, name, brokers)
    authority, own = str(folder.authority_file), str(folder.certificate(name))
    methods = ["BASIC", "CERTIFICATE", *(["BEARER"] if _TOKENS in given else [])]
    settings = {
        "authentication.method": ",".join(methods),
        "authentication.kafka.bootstrap.servers": bootstrap,
        "authentication.kafka.security.protocol": "SASL_SSL",
        "authentication.kafka.sasl.mechanism": MECHANISM,
        "authentication.kafka.ssl.ca.location": authority,
        "ssl.certificate.location": own,
        "ssl.ca.location": authority,
        "ssl.client.authentication": "REQUESTED",
        "ssl.principal.mapping.rules": _NAMES,
    }
    if name in ("registry", "connect"):
        settings["super.users"] = f"User:{ADMIN};User:{LAUNCHER}"
    if name in USERS:
        settings |= {
            "client.security.protocol": "SASL_SSL",
            "client.sasl.mechanism": MECHANISM,
            "client.sasl.username": name,
            "client.ssl.ca.location": authority,
        }
    if name == "connect":
        # Where the tour's connectors write, and no folder with passwords or keys.
        data = folder.path.parent
        settings["connector.allowed.paths"] = f"{data / 'archive'},{data / 'shop.db'}"
    if name == "streams":
        settings |= {
            "ksql.schema.registry.ssl.ca.location": authority,
            "ksql.schema.registry.ssl.certificate.location": own,
            # No statements about connectors: Connect has rules of its own, which are about its callers.
            "ksql.connect.url": "",
        }
    if name == "rest-proxy":
        settings |= {
            "schema.registry.ssl.ca.location": authority,
            "schema.registry.ssl.certificate.location": own,
            "schema.registry.as.caller": "true",
        }
    return settings


def secret_settings(folder: SecurityFolder, name: str) -> dict[str, str]:
    """The settings of a service that belong into a file. Raises OSError."""
    if kind_of(name) is BROKER:
        return {"delegation.token.secret.key": folder.password(TOKEN_SECRET)}
    return {"client.sasl.password": folder.password(name)} if name in USERS else {}


def _of_broker(folder: SecurityFolder, name: str, brokers: Iterable[str]) -> dict[str, str]:
    authority = str(folder.authority_file)
    users = (ADMIN, LAUNCHER, *brokers)
    settings = {
        "listener.security.protocol.map": f"{CLIENTS_LISTENER}:SASL_SSL,{CERTIFICATES_LISTENER}:SSL,"
        f"{CONTROLLERS_LISTENER}:SSL",
        "inter.broker.listener.name": CERTIFICATES_LISTENER,
        f"listener.name.{CERTIFICATES_LISTENER.lower()}.ssl.client.auth": "required",
        f"listener.name.{CONTROLLERS_LISTENER.lower()}.ssl.client.auth": "required",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(folder.certificate(name)),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": authority,
        "ssl.principal.mapping.rules": _NAMES,
        "sasl.enabled.mechanisms": ",".join(MECHANISMS),
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": ";".join(f"User:{user}" for user in users),
        "confluent.ssl.truststore.location": authority,
        "confluent.ssl.keystore.location": str(folder.certificate(NODE)),
    }
    for mechanism in MECHANISMS:
        key = f"listener.name.{CLIENTS_LISTENER.lower()}.{mechanism.lower()}.sasl.jaas.config"
        settings[key] = f"{_SCRAM_MODULE} required;"
    return settings
