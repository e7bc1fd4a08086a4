"""What a session of `caudal sql` remembers between statements."""

from dataclasses import dataclass, field

from deploy.clients.sql import Session


@dataclass(slots=True)
class State:
    """Properties and variables that go with every statement, and the last command that the service has run."""

    properties: dict[str, str] = field(default_factory=dict)
    variables: dict[str, str] = field(default_factory=dict)
    sequence: int | None = None

    def session(self) -> Session:
        """What goes with the next statement."""
        return Session(properties=self.properties, variables=self.variables, sequence=self.sequence)

    def remember(self, sequence: object) -> None:
        """The number of a command: later statements wait until it has run."""
        if isinstance(sequence, int) and sequence >= 0:
            self.sequence = max(self.sequence or 0, sequence)
