"""Shows what a configuration would do to sample records, or to dead letters.

Records of a sink pass its converters and transforms; those of a source only its transforms, since its converters may
register schemas. Nothing is written anywhere, and the connector itself is not created.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Annotated, Any, Final, TypeVar

import msgspec
from msgspec import Meta

from connect.api.data import Schema
from connect.api.errors import java_name_of
from connect.api.record import Header, Record, SinkRecord
from connect.api.sink import SinkConnector
from connect.runtime.configuration.config_providers import ConfigProviders, conceal
from connect.runtime.configuration.plugins import Plugins
from connect.runtime.configuration.reach import limits_of
from connect.runtime.configuration.secrets import ConfigSecrets
from connect.runtime.configuration.validation import definition_class, validate
from connect.runtime.failures.error_policy import Stage
from connect.runtime.tasks.conversion import Conversion, class_name_of, conversion_of
from connect.settings import ConnectSettings

T = TypeVar("T")
_CONVERTER: Final = re.compile(r"(key|value|header)\.converter")


class Sample(msgspec.Struct, frozen=True, kw_only=True):
    """A sample record; for a source, key and value are data."""

    topic: str
    key: Any = None
    value: Any = None
    partition: int = 0
    offset: int = 0
    timestamp: int | None = None
    headers: Sequence[tuple[str, bytes | None]] = ()


class RecordView(msgspec.Struct, frozen=True, kw_only=True):
    """A record between two steps."""

    topic: Annotated[str, Meta(description="Its topic.")]
    partition: Annotated[int | None, Meta(description="Its partition; null when it has none yet.")]
    timestamp: Annotated[int | None, Meta(description="Its time.")]
    key: Annotated[Any, Meta(description="Its key; bytes are base64.")]
    value: Annotated[Any, Meta(description="Its value; bytes are base64.")]
    key_schema: Annotated[dict[str, Any] | None, Meta(description="The schema of its key.")]
    value_schema: Annotated[dict[str, Any] | None, Meta(description="The schema of its value.")]
    headers: Annotated[list[tuple[str, Any]], Meta(description="Its headers.")]


class StepView(msgspec.Struct, frozen=True, kw_only=True, rename={"class_name": "class"}):
    """The result of one step."""

    stage: Annotated[str, Meta(description="TRANSFORMATION.", examples=["TRANSFORMATION"])]
    name: Annotated[str, Meta(description="The alias of the transform.")]
    class_name: Annotated[str, Meta(description="Its class.")]
    record: Annotated[RecordView | None, Meta(description="The record afterwards; null when it was dropped.")]


class SampleError(msgspec.Struct, frozen=True, kw_only=True, rename={"class_name": "class"}):
    """Why a record would fail."""

    stage: Annotated[str, Meta(description="The stage at which it would fail.", examples=["VALUE_CONVERTER"])]
    class_name: Annotated[str, Meta(description="The class that fails.")]
    exception: Annotated[str, Meta(description="The name of the exception.")]
    message: Annotated[str, Meta(description="Its message.")]


class Outcome(msgspec.Struct, kw_only=True):
    """The result for one record."""

    steps: Annotated[list[StepView], Meta(description="The result of each transform.")] = []
    result: Annotated[RecordView | None, Meta(description="The final record; null when there is none.")] = None
    dropped: Annotated[bool, Meta(description="Whether a transform dropped it.")] = False
    error: Annotated[SampleError | None, Meta(description="Why it would fail; null when it would not.")] = None


class DryRunResult(msgspec.Struct, frozen=True):
    """The results of a dry run."""

    records: Annotated[list[Outcome], Meta(description="The results, in the order of the request.")]


class DryRun:
    """Applies configurations to sample records. Blocking and thread-safe."""

    def __init__(self, *, plugins: Plugins, providers: ConfigProviders, settings: ConnectSettings) -> None:
        self._plugins = plugins
        self._providers = providers
        self._settings = settings

    def __call__(self, config: Mapping[str, str | None], samples: Sequence[Sample]) -> list[Outcome]:
        """The result for each record; BadRequest when the configuration is invalid.

        Placeholders are resolved for converters only: the results of transforms would show the secrets.
        """
        validate(config, plugins=self._plugins, providers=self._providers, settings=self._settings).require()
        given = {key: value for key, value in config.items() if value is not None}
        resolved = given | self._providers.resolve({key: given[key] for key in given if _CONVERTER.match(key)})
        connector = self._plugins.connectors.find(resolved["connector.class"].strip())
        conversion = conversion_of(definition_class(connector).parse(resolved), self._plugins, self._settings)
        first = _convert if issubclass(connector, SinkConnector) else _as_given
        secrets = ConfigSecrets(self._plugins, self._providers).concealing(given)
        try:
            with limits_of(self._settings).enforced():
                return [_Trial(conversion, secrets).run(sample, first) for sample in samples]
        finally:
            conversion.close()


class _Failed(Exception):
    """A step failed; the rest is skipped."""


class _Trial:
    """Runs one record through the steps."""

    def __init__(self, conversion: Conversion, secrets: Mapping[str, str]) -> None:
        self.conversion = conversion
        self._secrets = secrets
        self._outcome = Outcome(steps=[])

    def run(self, sample: Sample, first: "Callable[[_Trial, Sample], Record]") -> Outcome:
        with suppress(_Failed):
            record: Record | None = first(self, sample)
            for step in self.conversion.chain.steps:
                if record is None:
                    break
                record = self.attempt(Stage.TRANSFORMATION, step.class_name, partial(step.apply, record))
                view = StepView(
                    stage=Stage.TRANSFORMATION.value,
                    name=step.name,
                    class_name=step.class_name,
                    record=None if record is None else _to_view(record),
                )
                self._outcome.steps.append(view)
            self._outcome.result = None if record is None else _to_view(record)
            self._outcome.dropped = record is None
        return self._outcome

    def attempt(self, stage: Stage, class_name: str, work: Callable[[], T]) -> T:
        try:
            return work()
        except Exception as error:
            message = conceal(str(error), self._secrets)
            exception = java_name_of(error)
            self._outcome.error = SampleError(
                stage=stage.value, class_name=class_name, exception=exception, message=message
            )
            raise _Failed from error


def _convert(trial: _Trial, sample: Sample) -> Record:
    given, topic = trial.conversion, sample.topic
    key_schema, key = trial.attempt(
        Stage.KEY_CONVERTER,
        class_name_of(given.key),
        lambda: given.key.to_connect(topic, sample.key, sample.headers),
    )
    value_schema, value = trial.attempt(
        Stage.VALUE_CONVERTER,
        class_name_of(given.value),
        lambda: given.value.to_connect(topic, sample.value, sample.headers),
    )
    headers = trial.attempt(Stage.HEADER_CONVERTER, class_name_of(given.headers), lambda: _headers(given, sample))
    return SinkRecord(
        topic=topic,
        partition=sample.partition,
        key_schema=key_schema,
        key=key,
        value_schema=value_schema,
        value=value,
        timestamp_ms=sample.timestamp,
        headers=headers,
        offset=sample.offset,
        timestamp_type="" if sample.timestamp is None else "CreateTime",
        original_topic=topic,
        original_partition=sample.partition,
        original_offset=sample.offset,
    )


def _headers(given: Conversion, sample: Sample) -> tuple[Header, ...]:
    read = [(name, given.headers.to_connect_header(sample.topic, name, data)) for name, data in sample.headers]
    return tuple(Header(name, value, schema) for name, (schema, value) in read)


def _as_given(trial: _Trial, sample: Sample) -> Record:
    """The record of a source: data without a schema."""
    return Record(
        topic=sample.topic,
        key=sample.key,
        value=sample.value,
        timestamp_ms=sample.timestamp,
        headers=_headers(trial.conversion, sample),
    )


def _to_view(record: Record) -> RecordView:
    return RecordView(
        topic=record.topic,
        partition=record.partition,
        timestamp=record.timestamp_ms,
        key=record.key,
        value=record.value,
        key_schema=_schema(record.key_schema),
        value_schema=_schema(record.value_schema),
        headers=[(header.key, header.value) for header in record.headers],
    )


def _schema(schema: Schema | None) -> dict[str, Any] | None:
    """A schema, without empty attributes."""
    if schema is None:
        return None
    shown: dict[str, Any] = {"type": schema.type.value, "optional": schema.optional}
    parts = {"name": schema.name, "version": schema.version, "default": schema.default, "doc": schema.doc}
    shown |= {name: part for name, part in parts.items() if part is not None}
    if schema.parameters:
        shown["parameters"] = dict(schema.parameters)
    if schema.fields:
        shown["fields"] = [{"name": field.name, "schema": _schema(field.schema)} for field in schema.fields]
    if schema.key_schema:
        shown["keys"] = _schema(schema.key_schema)
    if schema.value_schema:
        shown["values"] = _schema(schema.value_schema)
    return shown
