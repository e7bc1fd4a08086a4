"""Looks for the secrets of a test in everything that a broker and the tools write or show."""

import base64
import io
import json
import re
import urllib.request
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Final

from confluent_kafka.admin import AdminClient, ConfigResource, ResourceType

from deploy.cli import main
from tests.support.broker import BrokerProcess

TIMEOUT_S: Final = 30
SECRET_BYTES_MIN: Final = 8
"""A shorter one would be found by chance."""
_COMMANDS: Final = (
    ("cluster", "describe"),
    ("topic", "list"),
    ("user", "list"),
    ("acl", "list"),
    ("quota", "list"),
)


def places_with_secrets(
    broker: BrokerProcess,
    secrets: Collection[str],
    *,
    client: Mapping[str, str] | None = None,
    tool_options: Sequence[str] | None = None,
    known: Collection[Path] = (),
    has_metrics: bool = True,
) -> list[str]:
    """Where a secret was found, in whichever form: files and logs, the metrics page, DescribeConfigs, and the tools.

    `client` (librdkafka) and `tool_options` log in as an administrator; without them a listener without login is used.
    In the `known` files, the test has put a secret itself.
    """
    forms = [form for secret in secrets for form in forms_of(secret)]
    places = [*_files(broker, known), *_configs(client or {"bootstrap.servers": broker.bootstrap})]
    places += _tools(tool_options or ("--bootstrap", broker.bootstrap))
    if has_metrics:
        places.append(_metrics(broker))
    return [name for name, content in places if any(form in content for form in forms)]


def forms_of(secret: str) -> set[bytes]:
    """A secret as it could be written down: as it is, escaped, in hexadecimal digits, and in base64."""
    raw = secret.encode()
    assert len(raw) >= SECRET_BYTES_MIN, "a short secret is found by chance"
    forms = {raw, json.dumps(secret)[1:-1].encode(), repr(secret)[1:-1].encode(), raw.hex().encode()}
    for before, first in ((0, 0), (1, 2), (2, 3)):  # bytes in front of it, and the first character that is its own
        whole = (before + len(raw)) // 3 * 4
        forms.add(base64.b64encode(bytes(before) + raw)[first:whole])
    return forms


def _files(broker: BrokerProcess, known: Collection[Path]) -> Iterator[tuple[str, bytes]]:
    files = [path for path in broker.directory.rglob("*") if path.is_file() and path not in known]
    names = {path.name for path in files}
    assert {"stdout.log", "stderr.log"} <= names, names
    assert any(path.is_relative_to(broker.data) for path in files), "the data of the broker is elsewhere"
    for path in files:
        yield str(path), path.read_bytes()


def _metrics(broker: BrokerProcess) -> tuple[str, bytes]:
    found = re.findall(r"metrics=(http://\S+/metrics)", broker.log_text())
    assert found, "the broker has no metrics page: set metrics.listener"
    with urllib.request.urlopen(found[-1], timeout=TIMEOUT_S) as response:
        return "metrics page", response.read()


def _configs(client: Mapping[str, str]) -> Iterator[tuple[str, bytes]]:
    """All that DescribeConfigs tells about the brokers, and about each topic."""
    admin = AdminClient({**client})
    metadata = admin.list_topics(timeout=TIMEOUT_S)
    resources = [ConfigResource(ResourceType.BROKER, str(node)) for node in metadata.brokers]
    resources += [ConfigResource(ResourceType.TOPIC, topic) for topic in metadata.topics]
    for resource in resources:  # a request may name one broker only
        described = admin.describe_configs([resource])[resource].result(TIMEOUT_S)
        assert described
        text = "\n".join(f"{entry.name}={entry.value} {list(entry.synonyms)}" for entry in described.values())
        yield f"DescribeConfigs of {resource.restype.name} {resource.name}", text.encode()


def _tools(options: Sequence[str]) -> Iterator[tuple[str, bytes]]:
    for words in _COMMANDS:
        for style in ("table", "json"):
            command = [*words, *options, "-o", style]
            with redirect_stdout(io.StringIO()) as stdout, redirect_stderr(io.StringIO()) as stderr:
                code = main(command)
            printed = stdout.getvalue() + stderr.getvalue()
            assert code == 0 or "no authorizer" in printed.lower(), f"{command}\n{printed}"
            yield f"caudal {' '.join(command)}", printed.encode()
