"""What holds for the compatibility levels whatever the format."""

from collections.abc import Sequence

from schema_registry.compatibility.levels import Earlier, Level, check
from schema_registry.formats.schema import Schema


def allowed_levels(new: Schema, *previous: Schema) -> set[Level]:
    """The levels that let a schema follow others, oldest first."""
    earlier = [Earlier(version, old) for version, old in enumerate(previous, 1)]
    return {level for level in Level if not check(level, new, earlier)}


def laws_hold(schemas: Sequence[Schema]) -> None:
    """Full is both ways, and transitive is more than plain: the first schema is to follow the others."""
    levels = allowed_levels(*schemas)
    assert Level.NONE in levels
    assert (Level.FULL in levels) == (levels >= {Level.BACKWARD, Level.FORWARD})
    assert (Level.FULL_TRANSITIVE in levels) == (levels >= {Level.BACKWARD_TRANSITIVE, Level.FORWARD_TRANSITIVE})
    for plain in (Level.BACKWARD, Level.FORWARD, Level.FULL):
        assert plain in levels or Level(f"{plain}_TRANSITIVE") not in levels
    assert allowed_levels(schemas[0], schemas[0]) == set(Level), "a schema may follow itself"
