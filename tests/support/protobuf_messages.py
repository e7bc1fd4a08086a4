"""Classes for the messages of .proto files, made by protoc as its users have them made."""

from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from tempfile import TemporaryDirectory

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.message import Message
from grpc_tools import protoc


def message_classes(protos: Mapping[str, str], *, includes: tuple[Path, ...] = ()) -> dict[str, type[Message]]:
    """The classes of all messages at the top of some files, by full name."""
    pool = descriptor_pool.DescriptorPool()
    compiled = _compiled(protos, includes)
    for file in compiled.file:
        pool.Add(file)
    return {
        descriptor.full_name: message_factory.GetMessageClass(descriptor)
        for name in protos
        for descriptor in pool.FindFileByName(name).message_types_by_name.values()
    }


def _compiled(protos: Mapping[str, str], includes: tuple[Path, ...]) -> descriptor_pb2.FileDescriptorSet:
    with TemporaryDirectory() as folder:
        for name, text in protos.items():
            path = Path(folder, name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        out = Path(folder, "out.binpb")
        paths = [folder, str(files("grpc_tools") / "_proto"), *map(str, includes)]
        status = protoc.main(["protoc", *(f"-I{path}" for path in paths), "--include_imports", f"-o{out}", *protos])
        assert status == 0, "protoc refused the files"
        return descriptor_pb2.FileDescriptorSet.FromString(out.read_bytes())
