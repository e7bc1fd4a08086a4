"""A secured platform that takes tokens, too: its users, every way to log in, and all that its services answered."""

import ssl
import threading
import time
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import httpx2
import psutil
from confluent_kafka import TopicCollection
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ConfigResource,
    NewTopic,
    ResourcePatternType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialAlteration,
    UserScramCredentialUpsertion,
)
from confluent_kafka.admin import ResourceType as KafkaResource
from joserfc.jwk import ECKey, RSAKey

from tests.support.platform import PATIENCE_S, PlatformProcess
from tests.support.sasl_world import signed_token, signing_key
from tests.support.secret_search import forms_of
from tests.support.secure_platform import folder_of, kafka_client, tool
from tests.support.secured_registry import IdentityProvider, identity_provider
from tests.support.web_login import basic

SERVICES: Final = ("registry", "rest-proxy", "connect")
"""Every HTTP service of a platform."""
FIRST_KEY: Final = signing_key("first")
CACHE_MS: Final = 500
"""So long may an old password be right at an HTTP service."""
KEYS_MS: Final = 500
"""So often are the keys of tokens read."""
_AUDIENCE: Final = "caudal"
_LISTENER: Final = "listener.name.clients"
_OAUTH: Final = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required;"
_NUMBERS: Final = (".index", ".timeindex")
"""Files of nothing but numbers, which would take long to read."""
_LASTS_S: Final = 3600.0


@dataclass(frozen=True, slots=True)
class LoginWith:
    """How a client logs in: by a header, or by the file of a certificate."""

    headers: Mapping[str, str] = field(default_factory=dict)
    certificate: Path | None = None


NOTHING: Final = LoginWith()


def by_password(user: str, password: str) -> LoginWith:
    """A name and a password."""
    return LoginWith({"authorization": basic(user, password)})


def by_token(token: str) -> LoginWith:
    """A token."""
    return LoginWith({"authorization": f"Bearer {token}"})


class SecuredServices:
    """A running platform, as its administrator and its users meet it."""

    def __init__(self, platform: PlatformProcess, provider: IdentityProvider, folder: Path) -> None:
        self.platform = platform
        self.provider = provider
        self.files = folder / "files"
        """Where connectors may read and write."""
        self.security = folder_of(platform)
        self.secrets = {file.read_text().strip() for file in (self.security.path / "passwords").iterdir()}
        """Every secret that was used so far."""
        self.answers: list[httpx2.Response] = []
        """Every answer of a service."""
        self.outputs: list[tuple[str, str]] = []
        """Every command of ours, and what it has said."""
        self._admin: AdminClient | None = None
        self._lock = threading.Lock()

    # -- users ---------------------------------------------------------------------------------------------------------

    @property
    def kafka(self) -> AdminClient:
        """The cluster, as its administrator."""
        if self._admin is None:
            self._admin = AdminClient(kafka_client(self.platform))
        return self._admin

    def add_user(self, name: str, password: str) -> LoginWith:
        """Add a user, or give it another password."""
        self.secrets.add(password)
        info = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, 4096)
        wanted: list[UserScramCredentialAlteration] = [UserScramCredentialUpsertion(name, info, password.encode())]
        for future in self.kafka.alter_user_scram_credentials(wanted).values():
            future.result(PATIENCE_S)
        return by_password(name, password)

    def allow(self, name: str, resource: str, operation: str = "ALL", *, kind: str = "TOPIC") -> None:
        """Give a user a right on all names of the cluster that begin like this."""
        wanted = AclBinding(
            KafkaResource[kind],
            resource,
            ResourcePatternType.PREFIXED,
            f"User:{name}",
            "*",
            AclOperation[operation],
            AclPermissionType.ALLOW,
        )
        for future in self.kafka.create_acls([wanted]).values():
            future.result(PATIENCE_S)

    def create_topic(self, name: str) -> None:
        """A topic with one partition."""
        self.kafka.create_topics([NewTopic(name, 1, 1)])[name].result(PATIENCE_S)

    def token(self, user: str, key: RSAKey | ECKey = FIRST_KEY, *, lasts_s: float = _LASTS_S, **claims: Any) -> str:
        """A token of the identity provider."""
        now = time.time()  # noqa: TID251 - the clock of the identity provider
        said = {"sub": user, "iat": int(now), "exp": now + lasts_s, "aud": _AUDIENCE, **claims}
        token = signed_token(said, key, "RS256" if isinstance(key, RSAKey) else "ES256")
        with self._lock:
            self.secrets.add(token)
        return token

    def certificate(self, user: str) -> Path:
        """The file with the certificate of a user, issued if there is none yet."""
        file = self.security.certificate(user)
        if not file.exists():
            self.run("certificate", "create", user, "--folder", str(self.security.path))
        return file

    def admin(self) -> LoginWith:
        """The administrator."""
        return by_password("admin", self.security.password("admin"))

    # -- tools and clients ---------------------------------------------------------------------------------------------

    def run(self, *words: str) -> str:
        """A command of ours, which must succeed; the tools find the platform by its folder."""
        done = tool(self.platform, *words)
        assert done.returncode == 0, f"{words}\n{done.stdout}{done.stderr}"
        self.outputs.append((" ".join(("caudal", *words)), done.stdout + done.stderr))
        return done.stdout + done.stderr

    def trusting(self, certificate: Path | None = None) -> ssl.SSLContext:
        """What a client needs to trust the services now, and the certificate that it shows."""
        context = ssl.create_default_context(cafile=str(self.security.authority_file))
        if certificate is not None:
            context.load_cert_chain(certificate)
        return context

    def client(self, service: str, login: LoginWith, *, trusting: ssl.SSLContext | None = None) -> httpx2.Client:
        """A client of a service. What is answered to it is kept."""
        return httpx2.Client(
            base_url=self.platform.url(service),
            headers=login.headers,
            verify=trusting or self.trusting(login.certificate),
            timeout=PATIENCE_S,
            trust_env=False,
            event_hooks={"response": [self.answers.append]},
        )

    # -- what there is to be searched ----------------------------------------------------------------------------------

    def places_with(self, secrets: Collection[str]) -> list[str]:
        """Where a secret was found, in whichever form."""
        forms = {form for secret in secrets for form in forms_of(secret)}
        return [place for place, text in self.places() if any(form in text for form in forms)]

    def places(self) -> Iterator[tuple[str, bytes]]:
        """Everything that anyone may get to see: data and logs, processes, outputs, answers, metrics and settings."""
        yield from self._files()
        yield from self._processes()
        for command, said in self.outputs:
            yield command, said.encode()
        for number, answer in enumerate(list(self.answers)):
            headers = "\n".join(f"{key}: {value}" for key, value in answer.headers.items())
            body = answer.content if answer.is_stream_consumed else b""
            yield f"answer {number} to {answer.request.method} {answer.url}", headers.encode() + body
        with self.client("registry", NOTHING, trusting=self.trusting(self.certificate("admin"))) as client:
            for url in (*(f"{self.platform.url(name)}/metrics" for name in SERVICES), self.metrics_url):
                answer = client.get(url)
                assert answer.is_success, answer.text
                yield url, answer.content
        yield from self._configs()

    def _files(self) -> Iterator[tuple[str, bytes]]:
        """Logs, state, data: everything in the folder of the platform but what belongs to its owner alone."""
        files = [self.platform.output, *self.platform.data.rglob("*")]
        seen = {path.name for path in files}
        assert {"broker.log", "registry.log", "rest-proxy.log", "connect.log", "platform.json"} <= seen, seen
        assert any(path.parent.name == "connect-configs-0" for path in files), (
            "the config topic of Connect is elsewhere"
        )
        for path in files:
            is_private = path.is_relative_to(self.security.path)
            if path.is_file() and not is_private and path.suffix not in _NUMBERS:
                yield str(path), path.read_bytes()

    def _processes(self) -> Iterator[tuple[str, bytes]]:
        launcher = psutil.Process(self.platform.pid)
        for process in (launcher, *launcher.children(recursive=True)):
            for what in ("cmdline", "environ"):
                yield f"{what} of {process.pid}", Path(f"/proc/{process.pid}/{what}").read_bytes()

    def _configs(self) -> Iterator[tuple[str, bytes]]:
        """All that DescribeConfigs tells about the broker and its topics."""
        metadata = self.kafka.list_topics(timeout=PATIENCE_S)
        resources = [ConfigResource(ConfigResource.Type.BROKER, str(node)) for node in metadata.brokers]
        resources += [ConfigResource(ConfigResource.Type.TOPIC, topic) for topic in metadata.topics]
        for resource in resources:
            described = self.kafka.describe_configs([resource])[resource].result(PATIENCE_S)
            text = "\n".join(f"{entry.name}={entry.value} {list(entry.synonyms)}" for entry in described.values())
            yield f"settings of {resource.restype.name} {resource.name}", text.encode()
        yield "topics", str(self.kafka.describe_topics(TopicCollection(list(metadata.topics)))).encode()

    @property
    def metrics_url(self) -> str:
        """The metrics page of the broker."""
        return self.platform.service("broker").metrics


@contextmanager
def secured_services(folder: Path) -> Iterator[SecuredServices]:
    """Such a platform while the block lasts."""
    with identity_provider(FIRST_KEY) as provider:
        tokens = {
            "sasl.oauthbearer.jwks.endpoint.url": provider.url,
            "sasl.oauthbearer.jwks.endpoint.refresh.ms": str(KEYS_MS),
            "sasl.oauthbearer.expected.audience": _AUDIENCE,
            "sasl.oauthbearer.clock.skew.seconds": "0",
        }
        logins = {"authentication.cache.ttl.ms": str(CACHE_MS), "authentication.failures.per.minute": "1000000"}
        broker = {
            "sasl.enabled.mechanisms": "SCRAM-SHA-512,SCRAM-SHA-256,OAUTHBEARER",
            f"{_LISTENER}.oauthbearer.sasl.jaas.config": _OAUTH,
        }
        files = folder / "files"
        files.mkdir()
        wanted = {"broker": tokens | broker, **dict.fromkeys(SERVICES, tokens | logins)}
        wanted["connect"] = {**wanted["connect"], "connector.allowed.paths": str(files)}
        settings = [f"{name}:{key}={value}" for name, given in wanted.items() for key, value in given.items()]
        with PlatformProcess(folder / "platform", "--secure", settings=settings) as platform:
            yield SecuredServices(platform, provider, folder)
