"""The .proto files that every schema may import without a reference."""

from collections.abc import Mapping
from functools import cache
from importlib.util import find_spec
from pathlib import Path


def is_builtin(name: str) -> bool:
    """Whether this import path is one of the bundled files."""
    return name in names()


@cache
def folders() -> Mapping[str, Path]:
    """The folders of the bundled files, by their import paths."""
    return {
        "google/protobuf": _package_folder("grpc_tools") / "_proto" / "google" / "protobuf",
        "google/type": _package_folder("google.type"),
        "confluent": Path(__file__).parent / "protos" / "confluent",
    }


@cache
def names() -> frozenset[str]:
    """The import paths of all bundled files."""
    return frozenset(
        f"{prefix}/{path.relative_to(folder).as_posix()}"
        for prefix, folder in folders().items()
        for path in folder.rglob("*.proto")
    )


def _package_folder(package: str) -> Path:
    spec = find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        raise ModuleNotFoundError(f"Protobuf schemas need the package {package}", name=package)
    return Path(next(iter(spec.submodule_search_locations)))
