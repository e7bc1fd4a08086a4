"""Every transform and predicate that Caudal comes with."""

from typing import Final

from connect.api.transform import Predicate, Transform
from connect.transforms.cast import Cast
from connect.transforms.debezium.by_logical_table_router import ByLogicalTableRouter
from connect.transforms.debezium.extract_new_record_state import ExtractNewRecordState
from connect.transforms.debezium.outbox_event_router import EventRouter
from connect.transforms.expression_transforms import ContentBasedRouter, ExpressionFilter, ExpressionMap, ScriptFilter
from connect.transforms.extract_topic import ExtractTimestamp, ExtractTopic, ExtractTopicHeader
from connect.transforms.fields import ExtractField, HoistField, ReplaceField, SetSchemaMetadata, ValueToKey
from connect.transforms.filters import ConditionFilter, FieldValueFilter
from connect.transforms.flatten import Flatten
from connect.transforms.headers import DropHeaders, HeaderFrom, InsertHeader
from connect.transforms.insert_field import InsertField
from connect.transforms.mask_field import MaskField
from connect.transforms.predicates import HasHeaderKey, RecordIsTombstone, TopicNameMatches
from connect.transforms.routers import Filter, RegexRouter, TimestampRouter
from connect.transforms.sides import both_sides
from connect.transforms.timestamp_converter import TimestampConverter
from connect.transforms.tombstones import DropKey, DropValue, TombstoneHandler

TRANSFORMS: Final[tuple[type[Transform], ...]] = (
    *both_sides(Cast),
    DropHeaders,
    *both_sides(ExtractField),
    Filter,
    *both_sides(Flatten),
    *both_sides(HeaderFrom),
    *both_sides(HoistField),
    *both_sides(InsertField),
    InsertHeader,
    *both_sides(MaskField),
    RegexRouter,
    *both_sides(ReplaceField),
    *both_sides(SetSchemaMetadata),
    *both_sides(TimestampConverter),
    TimestampRouter,
    ValueToKey,
    ByLogicalTableRouter,
    ContentBasedRouter,
    EventRouter,
    ExtractNewRecordState,
    ScriptFilter,
    *both_sides(ConditionFilter),
    DropKey,
    DropValue,
    *both_sides(ExtractTimestamp),
    ExtractTopicHeader,
    *both_sides(ExtractTopic),
    *both_sides(FieldValueFilter),
    TombstoneHandler,
    ExpressionFilter,
    ExpressionMap,
)
PREDICATES: Final[tuple[type[Predicate], ...]] = (HasHeaderKey, RecordIsTombstone, TopicNameMatches)
