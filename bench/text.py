"""Small pieces of English that several messages share."""


def counted(number: int, noun: str) -> str:
    """`1 seed`, `3 seeds`."""
    return f"{number} {noun if number == 1 else noun + 's'}"


def one_line(text: str) -> str:
    """The text without what a terminal or a table would act on: control characters become spaces."""
    if text.isprintable():
        return text
    return "".join(character if character.isprintable() else " " for character in text)


SYMBOLS = {"lam": "λ", "lam1": "λ₁", "lam2": "λ₂", "alpha": "α", "beta": "β", "tau": "τ", "mu": "μ"}


def symbol(key: str) -> str:
    """The symbol that papers use for a setting, if there is one; `encoder.name` becomes `encoder`."""
    name = key.removesuffix(".name").rpartition(".")[2]
    return SYMBOLS.get(name, name)
