from collections.abc import Mapping

import pytest

from connect.api.errors import ConfigError
from connect.api.record import Header
from connect.api.transform import Predicate, R, Transform
from connect.transforms.chain import Chain
from connect.transforms.table import PREDICATES
from tests.support.transforming import BY_NAME, KAFKA, sink

PREDICATES_BY_NAME = {alias: plugin for plugin in PREDICATES for alias in plugin.aliases}
ADD_A = {"transforms.a.type": f"{KAFKA}InsertHeader", "transforms.a.header": "a", "transforms.a.value.literal": "x"}
ADD_B = {"transforms.b.type": f"{KAFKA}InsertHeader", "transforms.b.header": "b", "transforms.b.value.literal": "y"}
TOMBSTONES = {"predicates": "p", "predicates.p.type": f"{KAFKA}predicates.RecordIsTombstone"}


def chain(config: Mapping[str, str]) -> Chain:
    return Chain(config, BY_NAME.__getitem__, PREDICATES_BY_NAME.__getitem__)


def names_after(config: Mapping[str, str], value: object = 1) -> list[str]:
    record = sink(None, value)
    for step in chain(config).steps:
        result = step.apply(record)
        assert result is not None
        record = result
    return [header.key for header in record.headers]


@pytest.mark.parametrize(
    ("transforms", "expected"), [("", []), ("a", ["a"]), ("a, b", ["a", "b"]), ("b,a", ["b", "a"])]
)
def test_transforms_are_applied_in_their_order(transforms: str, expected: list[str]) -> None:
    assert names_after({"transforms": transforms, **ADD_A, **ADD_B}) == expected


def test_without_transforms_there_are_no_steps() -> None:
    assert chain({}).steps == []


def test_steps_tell_their_alias_and_the_class_that_kafka_knows() -> None:
    (step,) = chain({"transforms": "a", **ADD_A}).steps
    assert (step.name, step.class_name) == ("a", f"{KAFKA}InsertHeader")


@pytest.mark.parametrize(
    ("negate", "value", "expected"),
    [(None, None, ["a"]), (None, 1, []), ("false", 1, []), ("true", 1, ["a"]), ("true", None, [])],
)
def test_a_predicate_chooses_records_and_negate_the_others(
    negate: str | None, value: object, expected: list[str]
) -> None:
    config = {"transforms": "a", **ADD_A, **TOMBSTONES, "transforms.a.predicate": "p"}
    if negate is not None:
        config["transforms.a.negate"] = negate
    assert names_after(config, value) == expected


def test_a_filter_with_a_predicate_drops_what_it_chooses() -> None:
    config = {
        "transforms": "f",
        "transforms.f.type": f"{KAFKA}Filter",
        "transforms.f.predicate": "p",
        "predicates": "p",
        "predicates.p.type": f"{KAFKA}predicates.HasHeaderKey",
        "predicates.p.name": "drop",
    }
    (step,) = chain(config).steps
    kept = sink(None, 1)
    assert step.apply(kept) is kept
    assert step.apply(sink(None, 1, headers=(Header("drop", 1),))) is None


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"transforms": "a"}, 'Missing required configuration "transforms.a.type" which has no default value'),
        ({"transforms": "a,a", **ADD_A}, "Duplicate alias provided"),
        ({"transforms": "a", **ADD_A, "predicates": "p,p"}, "Duplicate alias provided"),
        ({"transforms": "a", **ADD_A, "transforms.a.negate": "true"}, "no config 'transforms.a.predicate'"),
        ({"transforms": "a", **ADD_A, "transforms.a.predicate": "p"}, "p for configuration transforms.a.predicate"),
        (
            {"transforms": "a", **ADD_A, **TOMBSTONES, "transforms.a.predicate": "p", "transforms.a.negate": "maybe"},
            "transforms.a.negate",
        ),
        (
            {"transforms": "a", **ADD_A, "predicates": "p", "transforms.a.predicate": "p"},
            'Missing required configuration "predicates.p.type"',
        ),
        ({"transforms": "a", "transforms.a.type": f"{KAFKA}InsertHeader"}, "transforms.a: .*header"),
    ],
)
def test_configurations_that_cannot_work_are_refused(config: dict[str, str], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        chain(config)


class Recording(Transform):
    closed: list[str] = []

    def __init__(self, config: Mapping[str, str]) -> None:
        super().__init__(config)
        self.name = config["name"]
        if self.name == "bad":
            raise ConfigError("bad")

    def apply(self, record: R) -> R | None:
        return record

    def close(self) -> None:
        self.closed.append(self.name)
        if self.name == "stuck":
            raise RuntimeError("stuck")


def recording(*names: str) -> Chain:
    config = {"transforms": ",".join(names)}
    for name in names:
        config.update({f"transforms.{name}.type": "Recording", f"transforms.{name}.name": name})
    return Chain(config, lambda _: Recording, lambda _: Predicate)


def test_all_are_closed_even_when_one_cannot_be() -> None:
    Recording.closed = []
    with pytest.raises(RuntimeError, match="stuck"):
        recording("one", "stuck", "two").close()
    assert Recording.closed == ["one", "stuck", "two"]


def test_those_before_one_that_is_refused_are_closed() -> None:
    Recording.closed = []
    with pytest.raises(ConfigError):
        recording("one", "bad", "two")
    assert Recording.closed == ["one"]


def test_a_class_without_other_names_is_told_by_its_own() -> None:
    (step,) = recording("one").steps
    assert step.class_name.endswith(".Recording")
