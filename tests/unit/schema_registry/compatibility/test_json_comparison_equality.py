import json

import pytest

from schema_registry.compatibility.json_comparison import Equality


@pytest.mark.parametrize(
    ("one", "other", "are_equal"),
    [
        ("1", "1.0", True),
        ("1", "true", False),
        ("0", "false", False),
        ("0", "null", False),
        ('"1"', "1", False),
        ('{"a":1,"b":[2]}', '{"b":[2.0],"a":1}', True),
        ("[1,2]", "[2,1]", False),
        ("[]", "{}", False),
        ("[null]", "[false]", False),
        ('[["a"]]', '["a"]', False),
        ('{"a":{"b":{}}}', '{"a":{"b":[]}}', False),
    ],
)
def test_values_are_equal_as_json_says(one: str, other: str, are_equal: bool) -> None:
    equality = Equality()
    left, right = json.loads(one), json.loads(other)

    assert (equality.key(left) == equality.key(right)) is are_equal
