"""A dataset as a Python object: its name and options, to be put into a suite."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from numpy.typing import ArrayLike


@dataclass(frozen=True)
class DatasetChoice:
    """A dataset's name and options, as the section `dataset` of a suite has them."""

    name: str
    options: Mapping[str, Any] = field(default_factory=dict)

    def as_config(self) -> dict[str, Any]:
        """The section `dataset` of a suite."""
        return {"name": self.name, **self.options}


def from_folder(
    path: str | Path,
    *,
    size: int | None = None,
    fit: Literal["stretch", "crop"] | None = None,
    test: float | None = None,
    domains: Sequence[str] | None = None,
    limit: int | None = None,
) -> DatasetChoice:
    """Your own pictures: a folder, zip or tar with DOMAIN/CLASS/*.jpg or CLASS/*.jpg.

    The options are those of the dataset `folder`; None stands for its default. A UserError says what is
    wrong with the folder.
    """
    given = {"size": size, "fit": fit, "test": test, "domains": domains and list(domains), "limit": limit}
    return _checked("folder", path, given)


def from_npz(
    path: str | Path,
    *,
    size: int | None = None,
    domains: Sequence[str] | None = None,
    limit: int | None = None,
) -> DatasetChoice:
    """Your own arrays in an .npz file; the options are those of the dataset `arrays`."""
    return _checked("arrays", path, {"size": size, "domains": domains and list(domains), "limit": limit})


def from_arrays(
    x_train: ArrayLike,
    y_train: ArrayLike,
    x_test: ArrayLike,
    y_test: ArrayLike,
    *,
    domain_train: ArrayLike | None = None,
    domain_test: ArrayLike | None = None,
    classes: Sequence[str] | None = None,
    name: str = "arrays",
    size: int | None = None,
    domains: Sequence[str] | None = None,
    limit: int | None = None,
    cache: Path | None = None,
) -> DatasetChoice:
    """Your own arrays: images (bytes, or floats from 0 to 1) or vectors, with integer or string labels.

    `domain_train` and `domain_test` name the domain of each sample; without them there is one domain, called
    `name`. `classes` names the labels 0, 1, …; without it, the classes are the labels that occur. The arrays
    are written once to an .npz file in the cache, named after their content.
    """
    from bench.data.npz_files import write_npz

    if (domain_train is None) != (domain_test is None):
        from bench.errors import UserError

        raise UserError("from_arrays: give both 'domain_train' and 'domain_test', or neither")
    prefix = "" if domain_train is not None else f"{name}/"
    arrays = {
        f"{prefix}x_train": x_train,
        f"{prefix}y_train": y_train,
        f"{prefix}x_test": x_test,
        f"{prefix}y_test": y_test,
        "domain_train": domain_train,
        "domain_test": domain_test,
        "classes": classes,
    }
    path = write_npz({key: array for key, array in arrays.items() if array is not None}, cache)
    return from_npz(path, size=size, domains=domains, limit=limit)


def _checked(name: str, path: str | Path, options: Mapping[str, Any]) -> DatasetChoice:
    from bench.data import dataset_spec

    given = {"path": str(path), **{key: value for key, value in options.items() if value is not None}}
    spec = dataset_spec(name, given)
    spec.domain_names()
    spec.class_names(None)
    return DatasetChoice(name, given)
