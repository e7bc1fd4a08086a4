"""Decoders by their descriptions, opened once per process so that they share connections and schemas."""

import atexit
import os

from schema_registry.client.settings import InvalidSettings
from streams.errors import WrongOption
from streams.spark.decoding.decoder import Decoder
from streams.spark.decoding.json_documents import JsonDecoder
from streams.spark.decoding.plain import BytesDecoder, TextDecoder
from streams.spark.decoding.registry import RegistryDecoder
from streams.spark.decoding.spec import DecoderSpec, Format

_MOST_OPEN = 100

_open: dict[tuple[int, DecoderSpec], Decoder] = {}


def open_decoder(spec: DecoderSpec) -> Decoder:
    """The decoder of a description, the same one for equal descriptions; raises WrongOption."""
    key = (os.getpid(), spec)  # A worker may be a fork of another, whose connections it must not use.
    found = _open.get(key)
    if found is None:
        if len(_open) >= _MOST_OPEN:
            _open.clear()
        found = _open[key] = _new(spec)
    return found


def close_opened() -> None:
    """Close the decoders of this process, but not those that a fork inherited."""
    for (process, _), decoder in list(_open.items()):
        if process == os.getpid() and isinstance(decoder, RegistryDecoder):
            decoder.close()
    _open.clear()


atexit.register(close_opened)


def _new(spec: DecoderSpec) -> Decoder:
    match spec.format:
        case Format.BYTES:
            return BytesDecoder()
        case Format.STRING:
            return TextDecoder(is_strict=spec.is_text_strict)
        case Format.JSON:
            return JsonDecoder()
        case _:
            try:
                return RegistryDecoder(spec)
            except InvalidSettings as error:
                raise WrongOption("schema.registry", spec.format.value, str(error)) from error
