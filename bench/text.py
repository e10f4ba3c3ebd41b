"""Small pieces of English that several messages share."""


def counted(number: int, noun: str) -> str:
    """`1 seed`, `3 seeds`."""
    return f"{number} {noun if number == 1 else noun + 's'}"


def one_line(text: str) -> str:
    """The text without what a terminal or a table would act on: control characters become spaces."""
    if text.isprintable():
        return text
    return "".join(character if character.isprintable() else " " for character in text)
