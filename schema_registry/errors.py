"""What can go wrong, by the codes that clients of Confluent's registry branch on."""


class RegistryError(Exception):
    """An answer that is no success: the code is Confluent's, its first three digits are the HTTP status."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message

    @property
    def status(self) -> int:
        """The HTTP status."""
        return self.code // 100 if self.code >= 10_000 else self.code
