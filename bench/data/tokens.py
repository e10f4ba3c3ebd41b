"""Texts as numbers: the ids that a language model's tokenizer gives to their words and parts of words."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from bench.data.language_models import tokenizer_file
from bench.errors import UserError

PADDING = ("[PAD]", "<pad>")


def tokenised(texts: Sequence[str], source: str, length: int) -> np.ndarray:
    """int32 (N, length): each text's ids, cut off at `length` or padded to it behind its end.

    The model's start and end marks count. Which positions are real follows from the ids: those that are not
    the tokenizer's padding.
    """
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(tokenizer_file(source)))
    pad = next((token for token in PADDING if tokenizer.token_to_id(token) is not None), None)
    if pad is None:
        raise UserError(f"the tokenizer of '{source}' has no padding token; choose another language model")
    tokenizer.enable_truncation(length)
    tokenizer.enable_padding(pad_id=tokenizer.token_to_id(pad), pad_token=pad, length=length)
    rows = [encoding.ids for encoding in tokenizer.encode_batch(list(texts))]
    return np.array(rows, np.int32).reshape(len(texts), length)
