"""predictions.npz: what a cell's final model says about every test sample.

domains      the names of the test sets
digests      of each test set's true labels, so that two cells are known to have been tested on the same
models       how many models were judged: 1 for a global model, else the number of clients
right_N      for each sample of test set N, how many of the models are right
predicted_N  for each sample of test set N, the class predicted by the global model; absent without one
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench.errors import UserError
from bench.records.files import LARGEST, write_atomically
from bench.records.safe_archives import refuse_zip_bomb

if TYPE_CHECKING:
    import numpy as np

    Counts = np.ndarray[Any, np.dtype[Any]]


@dataclass(frozen=True)
class Predictions:
    """The final predictions on each test set, sample by sample and in the order of the test set."""

    digests: Mapping[str, str]
    """Domain → digest of its true labels."""
    right: Mapping[str, Counts]
    """Domain → how many of the models are right, for each sample."""
    models: int = 1
    """How many models were judged: 1 for a global model, else the number of clients."""
    predicted: Mapping[str, Counts] = field(default_factory=dict)
    """Domain → the class that the global model predicts; empty where there is none."""

    def correctness(self, domain: str) -> Counts:
        """For each sample, the share of the models that are right; its mean is the accuracy."""
        import numpy as np

        return np.asarray(self.right[domain], dtype=np.float32) / self.models

    def write(self, file: Path) -> None:
        """Write the file with the smallest integers that hold the numbers."""
        import numpy as np

        arrays: dict[str, Any] = {
            "domains": np.array(list(self.right)),
            "digests": np.array([self.digests[domain] for domain in self.right]),
            "models": np.array(self.models),
        }
        for place, domain in enumerate(self.right):
            arrays[f"right_{place}"] = _small(self.right[domain])
            if domain in self.predicted:
                arrays[f"predicted_{place}"] = _small(self.predicted[domain])
        packed = BytesIO()
        np.savez_compressed(packed, **arrays)
        write_atomically(file, packed.getvalue())


def read_predictions(file: Path) -> Predictions:
    """The predictions in a file; a UserError says if it is damaged."""
    import numpy as np

    try:
        refuse_zip_bomb(file)
        with np.load(file, allow_pickle=False) as arrays:
            domains = [str(name) for name in arrays["domains"]]
            found = Predictions(
                digests=dict(zip(domains, map(str, arrays["digests"]), strict=True)),
                right={name: arrays[f"right_{place}"] for place, name in enumerate(domains)},
                models=int(arrays["models"]),
                predicted={
                    name: arrays[key]
                    for place, name in enumerate(domains)
                    if (key := f"predicted_{place}") in arrays
                },
            )
        _check(found)
    except UserError:
        raise
    except Exception as error:  # of NumPy, zipfile or zlib, depending on which byte is damaged
        raise UserError(
            f"{file} cannot be read ({error}); delete it to go without it, and make the report again"
        ) from error
    return found


def _check(found: Predictions) -> None:
    """A ValueError if the numbers cannot be predictions."""
    import numpy as np

    if not 1 <= found.models <= LARGEST:
        raise ValueError(f"it says that {found.models} models were judged")
    for values in (*found.right.values(), *found.predicted.values()):
        if values.ndim != 1 or not np.issubdtype(values.dtype, np.integer):
            raise ValueError("predictions must be whole numbers, one per sample")


def labels_digest(labels: Counts) -> str:
    """A digest of true labels in their order."""
    import numpy as np

    return hashlib.sha256(np.ascontiguousarray(labels, dtype="<i8").tobytes()).hexdigest()[:16]


def _small(values: Counts) -> Counts:
    import numpy as np

    largest = int(values.max(initial=0))
    return values.astype(np.min_scalar_type(largest) if largest < 2**16 else np.int64)
