"""A platform that was started with `caudal up --secure`, as clients meet it: by the files that it has made."""

import socket
import ssl
import subprocess
from pathlib import Path
from typing import Any

import httpx2
from cryptography import x509

from core_broker.service.properties import read_file
from deploy.launcher.spark import engine_pid
from deploy.security.folder import SecurityFolder
from tests.support.open_ports import Port, answers_to_strangers, ports_of
from tests.support.platform import PATIENCE_S, PlatformProcess, caudal
from tests.support.service import service_environment


def folder_of(platform: PlatformProcess) -> SecurityFolder:
    """Its certificates, passwords and client files."""
    return SecurityFolder(platform.data)


def kafka_client(platform: PlatformProcess, *, by_certificate: bool = False) -> dict[str, Any]:
    """The configuration of a confluent-kafka client: the file as it is."""
    folder = folder_of(platform)
    return {**read_file(folder.certificate_config if by_certificate else folder.librdkafka_config), "log_level": 0}


def http_client(
    platform: PlatformProcess, *, user: str = "", password: str = "", certificate: str = ""
) -> httpx2.Client:
    """A client of HTTP services that trusts the platform's authority, and logs in as it is told."""
    folder = folder_of(platform)
    context = ssl.create_default_context(cafile=str(folder.authority_file))
    if certificate:
        context.load_cert_chain(folder.certificate(certificate))
    auth = (user, password) if user else None
    return httpx2.Client(verify=context, auth=auth, timeout=PATIENCE_S, trust_env=False)


def as_admin(platform: PlatformProcess) -> httpx2.Client:
    """A client that logs in as the administrator."""
    return http_client(platform, user="admin", password=folder_of(platform).password("admin"))


def open_ports(platform: PlatformProcess) -> list[Port]:
    """Everything that any of its processes listens on, Spark's among them."""
    engine = engine_pid(platform.data / "spark")
    return ports_of(platform.pid, *([engine] if engine else []))


def answers_without_a_name(platform: PlatformProcess, ports: list[Port]) -> list[str]:
    """What its ports answer to someone who gives no name."""
    spark = platform.state.spark
    return answers_to_strangers(ports, spark_connect=spark.connect_port if spark else None)


def client_file(folder: Path, platform: PlatformProcess, user: str, password: str) -> Path:
    """A client file for another user."""
    file = folder / f"{user}.properties"
    lines = folder_of(platform).client_config.read_text().splitlines()
    login = f'username="{user}" password="{password}";'
    file.write_text("\n".join(f"{line.split('username=')[0]}{login}" if "jaas" in line else line for line in lines))
    return file


def tool(platform: PlatformProcess, *words: str) -> "subprocess.CompletedProcess[str]":
    """A tool of ours that is told nothing but the folder of the platform."""
    return subprocess.run(
        caudal(*words),
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
        env={**service_environment(), "CAUDAL_DATA": str(platform.data)},
    )


def shown_certificate(platform: PlatformProcess, port: int) -> str:
    """The serial number of the certificate that a port shows to a new connection."""
    context = ssl.create_default_context(cafile=str(folder_of(platform).authority_file))
    context.load_cert_chain(folder_of(platform).certificate("admin"))
    with (
        socket.create_connection(("127.0.0.1", port), PATIENCE_S) as plain,
        context.wrap_socket(plain, server_hostname="localhost") as encrypted,
    ):
        der = encrypted.getpeercert(binary_form=True)
    assert der is not None
    return f"{x509.load_der_x509_certificate(der).serial_number:x}"
