"""Every transform and predicate that Caudal brings along."""

from typing import Final

from connect.api.transform import Predicate, Transform
from connect.transforms.cast import CastKey, CastValue
from connect.transforms.condition_filter import ConditionFilterKey, ConditionFilterValue
from connect.transforms.debezium.by_logical_table_router import ByLogicalTableRouter
from connect.transforms.debezium.extract_new_record_state import ExtractNewRecordState
from connect.transforms.debezium.outbox_event_router import EventRouter
from connect.transforms.expression_transforms import (
    ContentBasedRouter,
    ExpressionFilter,
    ExpressionMap,
    ScriptFilter,
)
from connect.transforms.extract_field import ExtractFieldKey, ExtractFieldValue
from connect.transforms.extract_topic import (
    ExtractTimestampKey,
    ExtractTimestampValue,
    ExtractTopicHeader,
    ExtractTopicKey,
    ExtractTopicValue,
)
from connect.transforms.field_value_filter import FieldValueFilterKey, FieldValueFilterValue
from connect.transforms.flatten import FlattenKey, FlattenValue
from connect.transforms.header_from import HeaderFromKey, HeaderFromValue
from connect.transforms.headers import DropHeaders, InsertHeader
from connect.transforms.hoist_field import HoistFieldKey, HoistFieldValue
from connect.transforms.insert_field import InsertFieldKey, InsertFieldValue
from connect.transforms.mask_field import MaskFieldKey, MaskFieldValue
from connect.transforms.predicates import HasHeaderKey, RecordIsTombstone, TopicNameMatches
from connect.transforms.replace_field import ReplaceFieldKey, ReplaceFieldValue
from connect.transforms.routers import Filter, RegexRouter, TimestampRouter
from connect.transforms.set_schema_metadata import SetSchemaMetadataKey, SetSchemaMetadataValue
from connect.transforms.timestamp_converter import TimestampConverterKey, TimestampConverterValue
from connect.transforms.tombstones import DropKey, DropValue, TombstoneHandler
from connect.transforms.value_to_key import ValueToKey

TRANSFORMS: Final[tuple[type[Transform], ...]] = (
    CastKey,
    CastValue,
    DropHeaders,
    ExtractFieldKey,
    ExtractFieldValue,
    Filter,
    FlattenKey,
    FlattenValue,
    HeaderFromKey,
    HeaderFromValue,
    HoistFieldKey,
    HoistFieldValue,
    InsertFieldKey,
    InsertFieldValue,
    InsertHeader,
    MaskFieldKey,
    MaskFieldValue,
    RegexRouter,
    ReplaceFieldKey,
    ReplaceFieldValue,
    SetSchemaMetadataKey,
    SetSchemaMetadataValue,
    TimestampConverterKey,
    TimestampConverterValue,
    TimestampRouter,
    ValueToKey,
    ByLogicalTableRouter,
    ContentBasedRouter,
    EventRouter,
    ExtractNewRecordState,
    ScriptFilter,
    ConditionFilterKey,
    ConditionFilterValue,
    DropKey,
    DropValue,
    ExtractTimestampKey,
    ExtractTimestampValue,
    ExtractTopicHeader,
    ExtractTopicKey,
    ExtractTopicValue,
    FieldValueFilterKey,
    FieldValueFilterValue,
    TombstoneHandler,
    ExpressionFilter,
    ExpressionMap,
)
PREDICATES: Final[tuple[type[Predicate], ...]] = (HasHeaderKey, RecordIsTombstone, TopicNameMatches)
