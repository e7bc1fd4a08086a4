"""Decoders by descriptions that travel."""

import pickle

import pytest

from streams.errors import WrongOption
from streams.spark.decoding.json_documents import JsonDecoder
from streams.spark.decoding.opening import open_decoder
from streams.spark.decoding.plain import BytesDecoder, TextDecoder
from streams.spark.decoding.registry import RegistryDecoder
from streams.spark.decoding.spec import DecoderSpec, Format

URL = {"schema.registry.url": "http://registry:8081"}


@pytest.mark.parametrize("format_", list(Format))
def test_a_description_opens_the_same_decoder_wherever_it_arrives(format_: Format) -> None:
    spec = DecoderSpec.of(format_, URL if format_.needs_registry else None)
    arrived = pickle.loads(pickle.dumps(spec))
    assert arrived == spec
    assert open_decoder(arrived) is open_decoder(spec)


@pytest.mark.parametrize(
    ("format_", "kind"),
    [("avro", RegistryDecoder), ("json", JsonDecoder), ("string", TextDecoder), ("bytes", BytesDecoder)],
)
def test_each_format_has_its_decoder(format_: str, kind: type) -> None:
    assert type(open_decoder(DecoderSpec.of(format_, URL if format_ == "avro" else None))) is kind


def test_decoders_of_keys_and_of_values_are_not_the_same() -> None:
    assert open_decoder(DecoderSpec.of("avro", URL)) is not open_decoder(DecoderSpec.of("avro", URL, is_key=True))


def test_wrong_settings_of_the_registry_are_told() -> None:
    with pytest.raises(WrongOption, match=r"schema\.registry\.ulr"):
        open_decoder(DecoderSpec.of("avro", {"schema.registry.ulr": "http://registry"}))


def test_an_unknown_format_is_refused() -> None:
    with pytest.raises(ValueError, match="xml"):
        DecoderSpec.of("xml")
