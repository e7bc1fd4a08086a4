import pytest

from schema_registry.compatibility.policy import Level, Policy


def test_levels_and_policies_are_read_in_any_case() -> None:
    assert Level.parse(" backward_Transitive ") is Level.BACKWARD_TRANSITIVE
    assert Policy.parse("lenient") is Policy.LENIENT


def test_an_unknown_level_is_refused_with_the_allowed_ones() -> None:
    with pytest.raises(ValueError, match="'SIDEWAYS' is not one of NONE, BACKWARD, .*FULL_TRANSITIVE"):
        Level.parse("SIDEWAYS")


@pytest.mark.parametrize(
    ("level", "backward", "forward", "transitive"),
    [
        (Level.NONE, False, False, False),
        (Level.BACKWARD, True, False, False),
        (Level.BACKWARD_TRANSITIVE, True, False, True),
        (Level.FORWARD, False, True, False),
        (Level.FORWARD_TRANSITIVE, False, True, True),
        (Level.FULL, True, True, False),
        (Level.FULL_TRANSITIVE, True, True, True),
    ],
)
def test_which_way_and_how_far_a_level_looks(level: Level, backward: bool, forward: bool, transitive: bool) -> None:
    assert (level.checks_backward, level.checks_forward, level.is_transitive) == (backward, forward, transitive)
