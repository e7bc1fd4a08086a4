"""Bytes as people read them."""

from typing import Final

MB: Final = 1_000_000
GB: Final = 1_000_000_000


def size(count: int) -> str:
    """`512 MB`, `1.5 GB`."""
    if count < GB:
        return f"{count / MB:,.0f} MB"
    return f"{count / GB:,.1f} GB"
