"""How strictly schemas of a subject are held to each other: levels (which way, how far back) and policies."""

from enum import StrEnum
from typing import Self


class _Setting(StrEnum):
    """Names that clients may write in any case."""

    @classmethod
    def parse(cls, text: str) -> Self:
        """The member of that name; ValueError tells what is allowed."""
        try:
            return cls(text.strip().upper())
        except ValueError:
            allowed = ", ".join(cls)
            raise ValueError(f"{text!r} is none of {allowed}") from None


class Level(_Setting):
    """Which readers must understand which writers' records."""

    NONE = "NONE"
    BACKWARD = "BACKWARD"
    BACKWARD_TRANSITIVE = "BACKWARD_TRANSITIVE"
    FORWARD = "FORWARD"
    FORWARD_TRANSITIVE = "FORWARD_TRANSITIVE"
    FULL = "FULL"
    FULL_TRANSITIVE = "FULL_TRANSITIVE"

    @property
    def is_transitive(self) -> bool:
        """Whether all earlier versions count, not the newest alone."""
        return self.endswith("_TRANSITIVE")

    @property
    def checks_backward(self) -> bool:
        """Whether the new schema must read what was written with earlier ones."""
        return self.startswith(("BACKWARD", "FULL"))

    @property
    def checks_forward(self) -> bool:
        """Whether earlier schemas must read what is written with the new one."""
        return self.startswith(("FORWARD", "FULL"))


class Policy(_Setting):
    """How JSON Schema's open content models are judged; Avro and Protobuf have one answer for all policies."""

    STRICT = "STRICT"
    LENIENT = "LENIENT"
    LOGICAL = "LOGICAL"
