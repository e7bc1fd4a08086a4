"""Content negotiation as Confluent's registry does it."""

import pytest

from core_broker.service.web.media_types import negotiate
from schema_registry.routes.media_types import RESPONSES

V1, ANY_VERSION, JSON = (
    b"application/vnd.schemaregistry.v1+json",
    b"application/vnd.schemaregistry+json",
    b"application/json",
)


@pytest.mark.parametrize(
    "accept,expected",
    [
        (b"*/*", V1),
        (b"", V1),
        (b"application/*", V1),
        (JSON, JSON),
        (b"application/json; charset=utf-8", JSON),
        (ANY_VERSION, ANY_VERSION),
        (b"text/html, application/json;q=0.9, */*;q=0.8", JSON),
        (b"application/json;q=0.5, application/vnd.schemaregistry.v1+json;q=0.4", JSON),
        (b"application/vnd.schemaregistry.v1+json, application/vnd.schemaregistry+json, application/json", V1),
        (b"application/vnd.schemaregistry.v1+json;q=0, */*", ANY_VERSION),
        (b"APPLICATION/JSON", JSON),
        (b"application/json;q=x", None),
        (b"text/plain", None),
        (b"application/avro", None),
        (b"*/*;q=0", None),
        (b"*", V1),
        (b"*/does-not-matter", V1),
        (b"text/html, image/gif, *; q=.2, */*; q=.2", V1),
    ],
)
def test_the_best_type_that_the_client_accepts_is_chosen(accept: bytes, expected: bytes | None) -> None:
    assert negotiate(accept, RESPONSES) == expected
