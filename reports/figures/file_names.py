"""Names of figure files: readable, and different for different figures."""

import hashlib
import re
from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from typing import TypeVar

Key = TypeVar("Key", bound=Hashable)


def file_names(titles: Mapping[Key, Sequence[str]]) -> dict[Key, str]:
    """Key → the words of its title in lower-case ASCII letters and digits, joined by `_`.

    Titles may differ only in characters that are not kept, such as λ and α. Their names then end with a
    digest of the key, which does not depend on the other figures of the run.
    """
    plain = {key: re.sub(r"[^a-z0-9]+", "_", " ".join(title).lower()) for key, title in titles.items()}
    uses = Counter(plain.values())
    return {key: name if uses[name] == 1 else f"{name}_{_digest(key)}" for key, name in plain.items()}


def _digest(key: Hashable) -> str:
    return hashlib.sha256(repr(key).encode()).hexdigest()[:8]
