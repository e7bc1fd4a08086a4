"""How strictly schemas are checked: compatibility levels (in which direction, how far back) and policies."""

from enum import StrEnum
from typing import Self


class _Setting(StrEnum):
    """An enum whose names clients may write in any case."""

    @classmethod
    def parse(cls, text: str) -> Self:
        """The member with this name; the ValueError lists the allowed ones."""
        try:
            return cls(text.strip().upper())
        except ValueError:
            allowed = ", ".join(cls)
            raise ValueError(f"{text!r} is not one of {allowed}") from None


class Level(_Setting):
    """Which readers must be able to read which writers' records."""

    NONE = "NONE"
    BACKWARD = "BACKWARD"
    BACKWARD_TRANSITIVE = "BACKWARD_TRANSITIVE"
    FORWARD = "FORWARD"
    FORWARD_TRANSITIVE = "FORWARD_TRANSITIVE"
    FULL = "FULL"
    FULL_TRANSITIVE = "FULL_TRANSITIVE"

    @property
    def is_transitive(self) -> bool:
        """Whether all earlier versions are checked, not only the newest."""
        return self.endswith("_TRANSITIVE")

    @property
    def checks_backward(self) -> bool:
        """Whether the new schema must be able to read records of earlier ones."""
        return self.startswith(("BACKWARD", "FULL"))

    @property
    def checks_forward(self) -> bool:
        """Whether earlier schemas must be able to read records of the new one."""
        return self.startswith(("FORWARD", "FULL"))


class Policy(_Setting):
    """How open content models of JSON Schema are checked; for Avro and Protobuf all policies are the same."""

    STRICT = "STRICT"
    LENIENT = "LENIENT"
    LOGICAL = "LOGICAL"
