"""Where the platform of a tour is, and how commands by hand name it."""

import shlex
import shutil
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from deploy.stack import BROKER, CONNECT, REGISTRY

EXAMPLES: Final = Path(__file__).parents[1] / "examples"
"""Schemas, configurations and SQL that the tour uses, and that users find beside it."""

Part = Literal["cluster", "registry", "connect", "spark", "platform"]
_KNOWN_BOOTSTRAP: Final = f"localhost:{BROKER.port}"
_KNOWN_REGISTRY: Final = f"http://localhost:{REGISTRY.port}"
_KNOWN_CONNECT: Final = f"http://localhost:{CONNECT.port}"
_KNOWN_DATA: Final = "caudal-platform"


@dataclass(frozen=True, slots=True, kw_only=True)
class Places:
    """Addresses and folders of a running platform."""

    data: Path
    bootstrap: str
    registry: str
    proxy: str
    connect: str
    spark_data: Path
    spark_port: int
    logs: Mapping[str, Path]
    """The log of each service, by its name."""

    @property
    def shop(self) -> Path:
        """The database that the SQL sink writes to."""
        return self.data / "shop.db"

    @property
    def folder(self) -> Path:
        """What the tour has sent and configured, to be looked at and sent again."""
        return self.data / "quickstart"

    @property
    def spark_log(self) -> Path:
        """Where Spark says what is wrong."""
        return self.spark_data / "engine.log"

    def caudal(self, words: str, part: Part) -> str:
        """A command as one would type it here, without addresses that are the default."""
        return f"{program()} {words}{self._options(part)}"

    def filled(self, text: str) -> str:
        """A configuration of the examples with the addresses and the folder of this platform."""
        return text.replace(_KNOWN_REGISTRY, self.registry).replace(_KNOWN_DATA, str(self.data.resolve()))

    def _options(self, part: Part) -> str:
        match part:
            case "cluster":
                return _option("--bootstrap", self.bootstrap, usual=_KNOWN_BOOTSTRAP)
            case "registry":
                return _option("--registry", self.registry, usual=_KNOWN_REGISTRY)
            case "connect":
                return _option("--connect", self.connect, usual=_KNOWN_CONNECT)
            case "spark":
                return f" --set {quoted(f'spark.caudal.data.dir={shown(self.spark_data)}')}"
            case "platform":
                return data_option(self.data)


def shown(path: Path) -> str:
    """A path as one would type it here."""
    resolved, here = path.resolve(), Path.cwd()
    return str(resolved.relative_to(here)) if resolved.is_relative_to(here) else str(path)


def data_option(data: Path) -> str:
    """The option that names the folder of the platform; empty for the default."""
    return _option("--data", shown(data), usual=_KNOWN_DATA)


def quoted(text: str) -> str:
    """Text as a word of a shell, as people quote it."""
    if "'" in text and not set(text) & set('"$`\\!'):
        return f'"{text}"'
    return shlex.quote(text)


def example(name: str) -> Path:
    """A file of the examples."""
    return EXAMPLES / name


def program() -> str:
    """The command `caudal` as one would type it here."""
    if shutil.which("caudal"):
        return "caudal"
    beside = Path(sys.executable).with_name("caudal")
    return quoted(shown_unresolved(beside)) if beside.exists() else "caudal"


def shown_unresolved(path: Path) -> str:
    """The same without following links: a virtual environment's programs are such."""
    here = Path.cwd()
    return str(path.relative_to(here)) if path.is_relative_to(here) else str(path)


def _option(name: str, value: str, *, usual: str) -> str:
    return "" if value == usual else f" {name} {quoted(value)}"
