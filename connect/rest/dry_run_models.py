"""Bodies of dry runs."""

import base64
import binascii
from typing import Any, Literal

import msgspec
from pydantic import BaseModel, ConfigDict, Field

from connect.rest.models import ConfigBody
from connect.runtime.dry_run import Sample
from connect.runtime.errors import BadRequest

_MAX_SAMPLES = 100


class SampleBody(BaseModel):
    """A record to try a configuration with; a dead letter fits, as it was answered."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"topic": "orders", "value": {"id": 5, "price": "9.90"}}]}
    )

    topic: str = Field(default="sample", min_length=1, max_length=249, description="The topic that it is read from.")
    key: Any = Field(default=None, description="Its key: text, or anything else, which is taken for its JSON.")
    value: Any = Field(default=None, description="Its value: text, or anything else, which is taken for its JSON.")
    encoding: Literal["utf-8", "base64"] = Field(default="utf-8", description="Of key and value that are text.")
    partition: int = Field(default=0, ge=0, le=2**31 - 1, description="Its partition.")
    offset: int = Field(default=0, ge=0, le=2**63 - 1, description="Its offset.")
    timestamp: int | None = Field(default=None, ge=0, le=2**62, description="Its time, in milliseconds since 1970.")
    headers: list[tuple[str, str | None]] = Field(default=[], description="Its headers: names and texts.")

    def sample(self, *, is_read: bool) -> Sample:
        """The same, for the worker; of sinks, keys and values are bytes that are read."""
        data = self._bytes if is_read else (lambda part: part)
        return Sample(
            topic=self.topic,
            key=data(self.key),
            value=data(self.value),
            partition=self.partition,
            offset=self.offset,
            timestamp=self.timestamp,
            headers=[(name, None if text is None else text.encode()) for name, text in self.headers],
        )

    def _bytes(self, part: Any) -> bytes | None:
        if part is None:
            return None
        if not isinstance(part, str):
            return msgspec.json.encode(part)
        if self.encoding == "utf-8":
            return part.encode()
        try:
            return base64.b64decode(part, validate=True)
        except (binascii.Error, ValueError):
            raise BadRequest("Keys and values must be base64, as encoding says") from None


class DryRunBody(BaseModel):
    """A configuration, and records to try it with."""

    model_config = ConfigDict(extra="forbid")

    config: ConfigBody = Field(
        description="The configuration of a connector.",
        examples=[
            {
                "name": "orders-to-file",
                "connector.class": "org.apache.kafka.connect.file.FileStreamSinkConnector",
                "topics": "orders",
                "file": "/tmp/orders.txt",
            }
        ],
    )
    records: list[SampleBody] = Field(
        default=[], max_length=_MAX_SAMPLES, description="Records to try it with; none: it is only checked."
    )
