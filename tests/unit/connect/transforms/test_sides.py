from connect.api.data import INT32, Schema, struct
from connect.transforms.sides import Memo
from tests.support.transforming import changed, made, sink


def test_what_was_worked_out_for_a_schema_is_kept_for_equal_ones() -> None:
    asked: list[Schema] = []

    def work_out(schema: Schema) -> int:
        asked.append(schema)
        return len(asked)

    kept = Memo(work_out)
    assert [kept[struct({"a": INT32})], kept[struct({"a": INT32})], kept[INT32]] == [1, 1, 2]


def test_no_more_than_a_thousand_schemas_are_kept() -> None:
    kept = Memo[Schema, int | None](lambda schema: schema.version)
    for version in range(2_500):
        assert kept[INT32.but(version=version)] == version
        assert len(kept) <= 1_000


def test_a_transform_of_one_side_leaves_the_other_and_the_place_alone() -> None:
    record = sink(INT32, 1, key_schema=INT32, key=2)
    value = changed(made("HoistField$Value", field="x"), record)
    key = changed(made("HoistField$Key", field="x"), record)
    assert (value.key, value.value) == (2, {"x": 1})
    assert (key.key, key.value) == ({"x": 2}, 1)
    assert value.place == key.place == ("topic", 3)  # type: ignore[attr-defined]  # records of sinks
