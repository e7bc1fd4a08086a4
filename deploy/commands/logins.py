"""How clients log in at a secured platform: lines to copy, which name files and never show a password."""

import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from deploy.security.folder import SecurityFolder

if TYPE_CHECKING:
    from deploy.launcher.state import PlatformState


def login_lines(state: "PlatformState", *, is_default: bool) -> Iterator[tuple[str, str]]:
    """A command for each kind of client; `is_default` says whether our tools find the folder by themselves."""
    folder = SecurityFolder(Path(state.data))
    if not is_default:
        yield "caudal", f"export CAUDAL_DATA={_word(Path(state.data))}      and every tool logs in by itself"
    librdkafka, java = _word(folder.librdkafka_config), _word(folder.client_config)
    first = (state.bootstrap or "").split(",")[0]
    yield "kcat", f"kcat -F {librdkafka} -L"
    yield "", f"kcat -F {_word(folder.certificate_config)} -L      with a librdkafka older than 2.6.1"
    lines = f"open({str(folder.librdkafka_config)!r}).read().splitlines()"
    yield "Python", f'Producer(dict(line.split("=", 1) for line in {lines}))      of confluent_kafka'
    yield "Java", f"kafka-topics.sh --list --bootstrap-server {first} --command-config {java}"
    yield "", f"{folder.java_config} has a PKCS12 store instead of PEM"
    if "registry" in state.services:
        yield "curl", f"curl --config {_word(folder.curl_config)} {state.services['registry'].endpoint}/subjects"
    yield "browser", f"{folder.authority_file} is the authority to trust; the user is admin"
    yield "more users", "caudal user create shop"
    yield "", "caudal acl allow User:shop --producer --topic orders"
    yield "certificates", "caudal certificate list"


def login_option(state: "PlatformState") -> str:
    """The option with which tools of ours log in at a platform that is not in the default folder."""
    return f" --client-config {_word(Path(state.client_config))}" if state.client_config else ""


def curl_word(state: "PlatformState") -> str:
    """The word `curl`, with what it needs to log in."""
    return f"curl --config {_word(SecurityFolder(Path(state.data)).curl_config)}" if state.is_secure else "curl"


def _word(path: Path) -> str:
    return shlex.quote(str(path))
