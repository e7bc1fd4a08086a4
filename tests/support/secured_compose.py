"""The containers of deploy/compose/secure.yaml as processes of this machine, with their variables but for addresses."""

import functools
import os
import re
import subprocess
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final, Self

from typing_extensions import override

from deploy.stack import BY_NAME
from tests.support.compose_cluster import Addresses
from tests.support.deployment import DEPLOY, merge_compose, read_compose
from tests.support.service import REPOSITORY, ServiceProcess

SINGLE: Final = ("compose.yaml", "secure.yaml")
CLUSTER: Final = ("compose.yaml", "cluster.yaml", "secure.yaml", "secure-cluster.yaml")
_COMPOSE: Final = DEPLOY / "compose"
_WITH_ADDRESSES: Final = ("LISTENERS", "LISTENER", "SERVERS", "URL", "BOOTSTRAP", "REGISTRY", "CONNECT")


class SecuredService(ServiceProcess):
    """One container."""

    ready = re.compile(rb"ready:?.*?(?:CLIENTS|https)://([\w.\[\]:-]+:\d+)")

    def __init__(self, directory: Path, *, command: list[str], environment: dict[str, str]) -> None:
        super().__init__(directory)
        self.environment = environment
        self._arguments = command

    @property
    def url(self) -> str:
        """Where an HTTP service listens."""
        return f"https://{self.address}"

    @override
    def _command(self) -> list[str]:
        variables = [f"{key}={value}" for key, value in self.environment.items()]
        return ["env", *variables, sys.executable, "-m", "deploy.cli", *self._arguments]


class SecuredCompose:
    """The platform; a context manager."""

    def __init__(
        self, directory: Path, *, files: Sequence[str] = SINGLE, services: Sequence[str] = tuple(BY_NAME)
    ) -> None:
        self.directory = directory
        self._names = services
        self._secrets = directory / "secrets"
        self.ca_file = self._secrets / "ca.crt"
        subprocess.run(["sh", DEPLOY / "setup" / "certificates.sh", self._secrets], check=True, capture_output=True)
        merged = functools.reduce(merge_compose, (read_compose(_COMPOSE / file) for file in files))
        self._containers = merged["services"]
        self._addresses = Addresses()
        self._stack = ExitStack()
        self.services: dict[str, SecuredService] = {}

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            for name in self._names:
                container = self._containers[name]
                if "access" in container.get("depends_on", {}):
                    self.run_access()
                environment = {key: self._here(name, key, value) for key, value in container["environment"].items()}
                folder = self.directory / name
                process = SecuredService(folder, command=container["command"], environment=environment)
                self.services[name] = stack.enter_context(process)
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *failure: object) -> None:
        self._stack.close()

    def certificate(self, name: str) -> Path:
        """The file with a key and the certificate of a name."""
        return self._secrets / "certificates" / f"{name}.pem"

    def address(self, container: str, port: int) -> str:
        """Where a port of a container is here."""
        return self._addresses.here(container, f":{port}")

    def run_access(self, **variables: str) -> "subprocess.CompletedProcess[str]":
        """Run the container that gives services their rights, with more variables; it must succeed."""
        container = self._containers["access"]
        *start, script = container["entrypoint"]
        assert start == ["tini", "--", "sh"]
        (mounted,) = (mount.split(":")[0] for mount in container["volumes"] if f":{script}:" in mount)
        return self._run(["sh", str(_COMPOSE / mounted)], container, **variables)

    def run_admin(self, *arguments: str) -> "subprocess.CompletedProcess[str]":
        """`docker compose run admin ARGUMENTS`, which must succeed."""
        return self._run(["caudal", *arguments], self._containers["admin"])

    def _run(
        self, command: list[str], container: dict[str, Any], **variables: str
    ) -> "subprocess.CompletedProcess[str]":
        environment = variables | {
            key: self._here("admin", key, value) for key, value in container["environment"].items()
        }
        environment["PATH"] = f"{self._programs()}:{os.environ['PATH']}"
        environment["PYTHONPATH"] = str(REPOSITORY)
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=120)
        assert done.returncode == 0, done.stdout + done.stderr
        return done

    def _programs(self) -> Path:
        """A folder whose `caudal` is ours."""
        folder = self.directory / "programs"
        if not folder.exists():
            folder.mkdir()
            program = folder / "caudal"
            program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m deploy.cli "$@"\n')
            program.chmod(0o755)
        return folder

    def _here(self, name: str, key: str, value: str) -> str:
        """A variable of a container, with the addresses and files of this machine."""
        if value == "/etc/caudal/admin.properties":
            file = self.directory / "admin.properties"
            file.write_text(self._files_here(name, (_COMPOSE / file.name).read_text()))
            return str(file)
        if key.endswith("ADVERTISED_HOST_NAME"):
            return "127.0.0.1"
        if key.endswith(_WITH_ADDRESSES):
            value = self._addresses.here(name, value)
        return self._files_here(name, value)

    def _files_here(self, name: str, text: str) -> str:
        data = self.directory / name / "data"
        data.mkdir(parents=True, exist_ok=True)
        here = {
            "/run/secrets/ca.crt": str(self.ca_file),
            "/run/secrets/tls.pem": str(self.certificate(self._containers[name]["secrets"][-1]["source"])),
            "/run/connectors": str(data),
            "/var/lib/caudal": str(data),
        }
        for there, file in here.items():
            text = text.replace(there, file)
        return text
