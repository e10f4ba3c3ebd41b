"""Folders, zip and tar archives as sources of named files; archives are read without unpacking them."""

import hashlib
import os
import stat
import tarfile
import zipfile
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path, PurePosixPath

from bench.errors import UserError
from bench.records.safe_archives import refuse_bomb

ARCHIVE_SUFFIXES = (".zip", ".tar", ".tar.gz", ".tgz", ".tar.bz2", ".tar.xz")


@contextmanager
def reading(path: Path, member: str = "") -> Iterator[None]:
    """Turns any error that a file causes into a UserError that names the file."""
    place = f"{member} in {path}" if member else str(path)
    try:
        yield
    except UserError:
        raise
    except MemoryError as error:
        raise UserError(
            f"{place} does not fit into memory; make room, or get it again if it should not be that large"
        ) from error
    # Decoders raise nearly any exception on damaged bytes.
    except Exception as error:
        text = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        reason = text.splitlines()[0].rstrip(":.") if text else type(error).__name__
        raise UserError(
            f"cannot read {place}: {reason}; it is damaged, incomplete or of another kind: get it again"
        ) from error


def file_times(path: Path) -> str:
    """A digest that changes with the name, size or time of any file in a folder, or of a single file."""
    digest = hashlib.sha256()
    with reading(path):
        if path.is_file():
            return hashlib.sha256(repr(_file_time(path)).encode()).hexdigest()
        for folder, subfolders, files in _walk(path):
            subfolders.sort()
            below = os.path.relpath(folder, path)
            for file in sorted(files):
                about = os.stat(f"{folder}{os.sep}{file}")  # noqa: PTH116  (several times faster than Path)
                digest.update(f"{below}/{file} {about.st_size} {about.st_mtime_ns}\n".encode())
    return digest.hexdigest()


def fingerprint(paths: Iterable[Path]) -> str:
    """A digest that changes with the sizes and times of the files, and when a folder gains or loses files."""
    digest = hashlib.sha256()
    for path in paths:
        with reading(path):
            digest.update(f"{path.name}\n".encode())
            for about in _folder_times(path) if path.is_dir() else [_file_time(path)]:
                digest.update(f"{about}\n".encode())
    return digest.hexdigest()


def _file_time(path: Path) -> tuple[int, int]:
    about = path.stat()
    return about.st_size, about.st_mtime_ns


def _folder_times(path: Path) -> Iterator[tuple[str, int, int]]:
    """Times of folders only: they change whenever a file is added or removed, and are quick to read."""
    for folder, subfolders, files in _walk(path):
        subfolders.sort()
        yield os.path.relpath(folder, path), len(files), Path(folder).stat().st_mtime_ns


def _walk(top: Path) -> Iterator[tuple[str, list[str], list[str]]]:
    """As `os.walk`, into links too, except those to a folder that they are in: they would never end."""
    for folder, subfolders, files in os.walk(top, followlinks=True):
        for name in list(subfolders):
            link = Path(folder, name)
            if link.is_symlink() and link.resolve() in _above(Path(folder), top):
                subfolders.remove(name)
        yield folder, subfolders, files


def _above(folder: Path, top: Path) -> set[Path]:
    """The folder and those on the way to it from the top, wherever links lead."""
    between = [folder, *folder.parents][: len(folder.parts) - len(top.parts) + 1]
    return {each.resolve() for each in between}


class Source(ABC):
    """A collection of named files."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @cached_property
    def names(self) -> list[str]:
        """Every file, as a sorted relative path with forward slashes."""
        return sorted(self._names())

    @abstractmethod
    def _names(self) -> list[str]: ...

    @abstractmethod
    def contents(self, names: Collection[str]) -> Iterator[tuple[str, bytes]]:
        """The bytes of these files, in whatever order reads fastest."""

    def digest(self, names: Collection[str]) -> str:
        """sha256 over the names and contents of these files, in the order of their names."""
        sums = {name: hashlib.sha256(data).hexdigest() for name, data in self.contents(names)}
        lines = "".join(f"{name} {sums[name]}\n" for name in sorted(sums))
        return hashlib.sha256(lines.encode()).hexdigest()

    def read(self, name: str) -> bytes:
        return next(data for _, data in self.contents([name]))


def open_source(path: Path) -> Source:
    if path.is_dir():
        return _Folder(path)
    return _Zip(path) if path.suffix.lower() == ".zip" else _Tar(path)


class _Folder(Source):
    def _names(self) -> list[str]:
        found = []
        for folder, _, files in _walk(self.path):
            below = Path(folder).relative_to(self.path).as_posix()
            found += files if below == "." else [f"{below}/{file}" for file in files]
        return found

    def contents(self, names: Collection[str]) -> Iterator[tuple[str, bytes]]:
        for name in names:
            path = self.path / name
            with reading(path):
                data = path.read_bytes()
            yield name, data


class _Zip(Source):
    def _names(self) -> list[str]:
        with reading(self.path), zipfile.ZipFile(self.path) as archive:
            files = [info for info in archive.infolist() if not info.is_dir()]
            refuse_bomb(self.path, sum(info.file_size for info in files))
            # A link's content would be a path, not an image.
            links = {info.filename for info in files if stat.S_ISLNK(info.external_attr >> 16)}
        return list(set(_safe(self.path, [info.filename for info in files])) - links)

    def contents(self, names: Collection[str]) -> Iterator[tuple[str, bytes]]:
        with reading(self.path), zipfile.ZipFile(self.path) as archive:
            for name in names:
                with reading(self.path, name):
                    data = archive.read(name)
                yield name, data


class _Tar(Source):
    def _names(self) -> list[str]:
        with reading(self.path), tarfile.open(self.path) as archive:
            members = _members(self.path, archive)
            # A tar ends with a block of zeros; tarfile does not notice if the file ends between two members.
            if archive.fileobj and archive.fileobj.tell() <= archive.offset:
                raise EOFError("its end is missing")
        _safe(self.path, [member.name for member in members])
        return [member.name.removeprefix("./") for member in members if member.isreg()]

    def contents(self, names: Collection[str]) -> Iterator[tuple[str, bytes]]:
        wanted = set(names)
        # In the order of the archive, because a compressed tar can only be read forwards.
        with reading(self.path), tarfile.open(self.path) as archive:
            for member in archive:
                name = member.name.removeprefix("./")
                if name in wanted and member.isreg() and (file := archive.extractfile(member)):
                    with reading(self.path, name):
                        data = file.read()
                    wanted.discard(name)
                    yield name, data


def _members(path: Path, archive: tarfile.TarFile) -> list[tarfile.TarInfo]:
    """All members; their sizes are added up on the way, since what stands between two of them is unpacked."""
    members = []
    size = 0
    for member in archive:
        members.append(member)
        size += member.size + tarfile.BLOCKSIZE
        refuse_bomb(path, size)
    return members


def _safe(path: Path, names: list[str]) -> list[str]:
    for name in names:
        parts = PurePosixPath(name.replace("\\", "/"))
        if parts.is_absolute() or ".." in parts.parts or ":" in (parts.parts or ("",))[0]:
            raise UserError(
                f"{path} contains a file that would be placed outside its folder ('{name}'); "
                "do not trust this archive; get it from its official site"
            )
    return names
