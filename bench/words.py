"""Small pieces of English that several messages share."""


def counted(number: int, noun: str, plural: str | None = None) -> str:
    """`1 seed`, `3 seeds`."""
    return f"{number} {noun if number == 1 else plural or noun + 's'}"
