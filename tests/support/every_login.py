"""A node that knows every way to log in, with rules, quotas and delegation tokens: ours or Apache Kafka's.

What programs in Java need to know about it is in a file of properties.
"""

import json
from pathlib import Path
from typing import Final

from cryptography.hazmat.primitives import serialization
from joserfc.jwk import RSAKey

from core_broker.settings.authorization import STANDARD_AUTHORIZER
from tests.support.authority import AuthorityFolder
from tests.support.either_node import EitherNode
from tests.support.kafka import KAFKA_JARS
from tests.support.sasl_world import key_set, signing_key

MODULES: Final = "org.apache.kafka.common.security"
ADMIN, ADMIN_PASSWORD = "admin", "admin-secret"
STORE_PASSWORD: Final = "store-secret"
ISSUER, AUDIENCE = "https://id.example", "kafka"
_MECHANISMS: Final = ("plain", "scram-sha-256", "scram-sha-512", "oauthbearer")
_SESSION_MS: Final = 2000


class EveryLogin(EitherNode):
    """Clients log in at LOGIN, and must do so again and again at SESSIONS; at CERTIFICATES they show one.

    AGED is the listener whose certificate tests replace; STRICT offers a single mechanism.
    """

    def __init__(self, directory: Path) -> None:
        self.stores = AuthorityFolder(directory / "stores")
        stranger = AuthorityFolder(directory / "stranger", "Stranger")
        keys = directory / "keys.json"
        keys.write_bytes(key_set(signing_key("key1")))
        super().__init__(
            directory,
            listeners={
                "LOGIN": "SASL_SSL",
                "SESSIONS": "SASL_SSL",
                "STRICT": "SASL_PLAINTEXT",
                "CERTIFICATES": "SSL",
                "AGED": "SSL",
            },
            settings=self._settings(keys),
            java_options=[f"-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls={keys.as_uri()}"],
        )
        for folder, name in ((self.stores, "billing"), (self.stores, "nobody"), (stranger, "billing")):
            folder.issue_pkcs12(name, STORE_PASSWORD)
        self.stores.issue_pkcs12("outdated", STORE_PASSWORD, has_expired=True)
        for name in ("renewed", "outdated"):
            file = self.stores.folder / f"AGED-{name}.pem"
            self.stores.issue("aged", has_expired=name == "outdated", file=file)
        self.world = directory / "world.properties"
        """What programs in Java read."""
        self.world.write_text(self._described(stranger))

    def _settings(self, keys: Path) -> dict[str, str]:
        names = ("LOGIN", "SESSIONS")
        settings = {
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(self.stores.issue("broker", hosts=["127.0.0.1"])),
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(self.stores.trust_store),
            "listener.name.aged.ssl.keystore.type": "PEM",
            "listener.name.aged.ssl.keystore.location": str(
                self.stores.issue("aged", file=self.stores.folder / "AGED.pem")
            ),
            "listener.name.certificates.ssl.client.auth": "required",
            "listener.name.certificates.ssl.principal.mapping.rules": "RULE:^CN=([^,]+)$/$1/",
            "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512,OAUTHBEARER",
            "listener.name.strict.sasl.enabled.mechanisms": "PLAIN",
            "listener.name.strict.plain.sasl.jaas.config": _plain_users(),
            "sasl.oauthbearer.jwks.endpoint.url": keys.as_uri(),
            "sasl.oauthbearer.expected.audience": AUDIENCE,
            "sasl.oauthbearer.expected.issuer": ISSUER,
            "sasl.oauthbearer.clock.skew.seconds": "0",
            "delegation.token.secret.key": "a secret of tests",
            "authorizer.class.name": STANDARD_AUTHORIZER,
            "super.users": f"User:{ADMIN};User:ANONYMOUS",
            "num.partitions": "1",
        }
        for name in names:
            settings |= _logins(f"listener.name.{name.lower()}.")
        for mechanism in _MECHANISMS:
            settings[f"listener.name.sessions.{mechanism}.connections.max.reauth.ms"] = str(_SESSION_MS)
        return settings

    def _described(self, stranger: AuthorityFolder) -> str:
        known = {
            **{f"at.{name}": address for name, address in self.addresses.items()},
            "broker": "caudal" if KAFKA_JARS is None else "kafka",
            "stores": str(self.stores.folder),
            "password": STORE_PASSWORD,
            "stranger": str(stranger.folder),
            "issuer": ISSUER,
            "audience": AUDIENCE,
            **{f"key.{name}": _private(signing_key(name)) for name in ("key1", "other")},
        }
        return "".join(f"{key}={json.dumps(value)[1:-1]}\n" for key, value in known.items())

    def client_properties(self, listener: str = "LOGIN", user: str = ADMIN, password: str = ADMIN_PASSWORD) -> str:
        """What Kafka's tools need to log in by a password."""
        return self.login_properties(listener, "PLAIN", f'username="{user}" password="{password}"')

    def login_properties(self, listener: str, mechanism: str, options: str) -> str:
        """The same by another mechanism."""
        module = {"PLAIN": "plain.Plain", "OAUTHBEARER": "oauthbearer.OAuthBearer"}.get(mechanism, "scram.Scram")
        return "".join(
            f"{key}={value}\n"
            for key, value in {
                "bootstrap.servers": self.addresses[listener],
                "security.protocol": "SASL_SSL",
                "ssl.truststore.type": "PEM",
                "ssl.truststore.location": self.stores.trust_store,
                "sasl.mechanism": mechanism,
                "sasl.jaas.config": f"{MODULES}.{module}LoginModule required {options};",
            }.items()
        )


def _plain_users() -> str:
    users = f'user_{ADMIN}="{ADMIN_PASSWORD}" user_alice="alice-secret" user_bob="bob-secret"'
    return f"{MODULES}.plain.PlainLoginModule required {users};"


def _logins(prefix: str) -> dict[str, str]:
    scram = f"{MODULES}.scram.ScramLoginModule required;"
    validator = f"{MODULES}.oauthbearer.OAuthBearerValidatorCallbackHandler"
    return {
        f"{prefix}plain.sasl.jaas.config": _plain_users(),
        f"{prefix}scram-sha-256.sasl.jaas.config": scram,
        f"{prefix}scram-sha-512.sasl.jaas.config": scram,
        f"{prefix}oauthbearer.sasl.jaas.config": f"{MODULES}.oauthbearer.OAuthBearerLoginModule required;",
        f"{prefix}oauthbearer.sasl.server.callback.handler.class": validator,
    }


def _private(key: object) -> str:
    """A key as Java reads it: PKCS#8, without the lines around it."""
    assert isinstance(key, RSAKey)
    loaded = serialization.load_pem_private_key(key.as_pem(private=True), None)
    pem = loaded.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    return "".join(pem.decode().splitlines()[1:-1])
