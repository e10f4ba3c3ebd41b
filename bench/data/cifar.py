"""What CIFAR-10 and CIFAR-100 have in common: Python batches or binary files, in a folder or an archive."""

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from bench.data.array_files import Form, RawSplits, arrays
from bench.data.sources import open_source, reading
from bench.errors import UserError

Labelled = tuple[np.ndarray, np.ndarray]


def batches(pattern: str, train: Sequence[str], test: str, parse: Callable[[bytes], Labelled]) -> Form:
    """The form with these batch files in a folder or archive."""

    def read(paths: Sequence[Path]) -> RawSplits:
        source = open_source(paths[0])
        known = {name.rpartition("/")[2]: name for name in source.names}
        for name in (*train, test):
            if name not in known:
                raise UserError(f"{paths[0]} lacks the file {name}; get it again")
        parsed = {}
        for member, data in source.contents([known[name] for name in (*train, test)]):
            name = member.rpartition("/")[2]
            with reading(source.path, name):
                parsed[name] = parse(data)
        images, labels = zip(*(parsed[name] for name in train), strict=True)
        return RawSplits(np.concatenate(images), np.concatenate(labels), *parsed[test])

    return arrays(pattern, read=read)
