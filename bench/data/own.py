"""What datasets made from a user's own files have in common: where the files are, and a digest of them."""

from __future__ import annotations

import contextlib
import hashlib
import os
from abc import abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, ClassVar, Self

from pydantic import AfterValidator, Field, PrivateAttr

from bench.config.names import LONGEST
from bench.data.base import DatasetSpec, Limit, TrainTest, distinct
from bench.data.cache import cache_root
from bench.data.sources import ARCHIVE_SUFFIXES, file_times
from bench.errors import UserError, nearest

DIGEST_LENGTH = 16
_DOMAINS: dict[tuple[str, str, str], tuple[str, ...]] = {}


class OwnData(DatasetSpec):
    """A dataset whose domains and classes are read from the user's files.

    The digest of the files becomes part of the options, so that a cell's identity follows the data, and the
    decoded arrays in the cache are found without the files.
    """

    origin: ClassVar[str] = (
        "own data stay where they are: give their path in the suite, as in "
        "dataset: {name: folder, path: DIR} or dataset: {name: arrays, path: FILE.npz}"
    )

    path: str = Field(min_length=1)
    """Absolute, or relative to the suite file's folder, the current directory, the data root or the cache, in
    this order."""
    domains: Annotated[tuple[str, ...], AfterValidator(distinct)] | None = Field(
        default=None, min_length=1, exclude_if=lambda domains: domains is None
    )
    """The domains to use, in this order; None: all of them, sorted by name."""
    limit: Limit = None
    digest: str | None = Field(default=None, pattern=f"^[0-9a-f]{{{DIGEST_LENGTH}}}$")
    """Digest of the files' content, computed when a suite is planned; in a suite file, it pins the data."""

    _root: Path | None = PrivateAttr(default=None)

    def identified(self, root: Path | None) -> Self:
        spec = self.model_copy()
        spec._root = root
        if spec.digest is None:
            digest = spec.current_digest()
            spec = spec.model_copy(update={"digest": digest})
        return spec

    def domain_names(self) -> tuple[str, ...]:
        # A plan asks for every cell, and the digest tells whether the answer is still right.
        key = (type(self).__name__, str(self.location().resolve()), self.digest or self.current_digest())
        if key not in _DOMAINS:
            _DOMAINS[key] = self._named(self.all_domains())
        present = _DOMAINS[key]
        for domain in self.domains or ():
            if domain not in present:
                raise UserError(f"{self.path} has no domain '{domain}'; {nearest(domain, present)}")
        return self.domains or present

    def _named(self, domains: tuple[str, ...]) -> tuple[str, ...]:
        """The domains, whose names become parts of file names."""
        for name in domains:
            if not name.isprintable() or len(name) > LONGEST:
                raise UserError(
                    f"{self.path}: {name[:LONGEST]!r} cannot name a domain; use letters and digits, "
                    f"at most {LONGEST}"
                )
        return domains

    def published_sizes(self) -> Mapping[str, tuple[int, int] | None]:
        return dict.fromkeys(self.domain_names())

    def fingerprint(self, root: Path | None) -> str:
        return self.digest or self.current_digest()

    def build(self, root: Path | None, domain: str) -> TrainTest:
        if self.digest is not None and self.digest != (now := self.current_digest()):
            raise UserError(
                f"the data at {self.location()} have the digest {now}, not {self.digest}: they changed after "
                "the run was planned, or the suite asks for other data; run the suite again, or correct "
                "its 'digest'"
            )
        return TrainTest(*(split.thinned(self.limit) for split in self.build_domain(domain)))

    @abstractmethod
    def all_domains(self) -> tuple[str, ...]:
        """The names of all domains in the files, sorted."""

    @abstractmethod
    def build_domain(self, domain: str) -> TrainTest:
        """The whole train and test set of one domain."""

    @abstractmethod
    def content_digest(self) -> str:
        """A sha256 over everything in the files that the arrays depend on."""

    def current_digest(self) -> str:
        """The digest of the files as they are now; their content is read only if their times are new."""
        location = self.location().resolve()
        known = hashlib.sha256(f"{type(self).__name__} {location} {file_times(location)}".encode())
        note = cache_root() / "digests" / known.hexdigest()[:32]
        with contextlib.suppress(OSError):
            return note.read_text(encoding="ascii")
        digest = self.content_digest()[:DIGEST_LENGTH]
        # If it cannot be stored, it is computed each time.
        with contextlib.suppress(OSError):
            note.parent.mkdir(parents=True, exist_ok=True)
            draft = note.with_name(f".{note.name}.{os.getpid()}")
            draft.write_text(digest, encoding="ascii")
            draft.replace(note)
        return digest

    def location(self) -> Path:
        """The file or folder that `path` refers to."""
        path = Path(self.path).expanduser()
        places = [Path(), *([self._root] if self._root else []), cache_root()]
        candidates = [path] if path.is_absolute() else [place / path for place in places]
        for candidate in candidates:
            if candidate.exists():
                return candidate
        if path.is_absolute():
            raise UserError(f"there is no file or folder {path}; correct the dataset's 'path'")
        below = f" or the data root {self._root}" if self._root else ""
        raise UserError(
            f"there is no '{self.path}' in the current directory{below}; correct the dataset's 'path', or "
            "name the data root by --data-root or BENCH_DATA_ROOT"
        )

    def stem(self) -> str:
        """The name of the file or folder without its suffix."""
        name = self.location().resolve().name
        suffixes = (*ARCHIVE_SUFFIXES, ".npz")
        suffix = next((each for each in suffixes if name.lower().endswith(each)), "")
        return name.removesuffix(name[len(name) - len(suffix) :]) if suffix else name
