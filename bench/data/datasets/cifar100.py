"""CIFAR-100: 60,000 small photographs of a hundred kinds; official files, an .npz, or pictures."""

from functools import partial
from typing import ClassVar

from bench.data.array_files import ArrayFiles, Form, arrays
from bench.data.cifar import batches
from bench.data.formats import cifar_batch, cifar_binary, read_npz
from bench.data.picture_forms import class_folders

NAMES = """
apple aquarium_fish baby bear beaver bed bee beetle bicycle bottle bowl boy bridge bus butterfly camel
can castle caterpillar cattle chair chimpanzee clock cloud cockroach couch crab crocodile cup dinosaur
dolphin elephant flatfish forest fox girl hamster house kangaroo keyboard lamp lawn_mower leopard lion
lizard lobster man maple_tree motorcycle mountain mouse mushroom oak_tree orange orchid otter palm_tree
pear pickup_truck pine_tree plain plate poppy porcupine possum rabbit raccoon ray road rocket rose sea
seal shark shrew skunk skyscraper snail snake spider squirrel streetcar sunflower sweet_pepper table tank
telephone television tiger tractor train trout tulip turtle wardrobe whale willow_tree wolf woman worm
"""
CLASSES = tuple(NAMES.split())
ARCHIVES = tuple(
    f"{name}*{suffix}"
    for name in ("cifar100", "cifar-100", "CIFAR100", "CIFAR-100")
    for suffix in (".zip", ".tar*")
)
_python = partial(batches, train=("train",), test="test", parse=partial(cifar_batch, label_key="fine_labels"))
_binary = partial(batches, train=("train.bin",), test="test.bin", parse=partial(cifar_binary, label_bytes=2))


class Cifar100(ArrayFiles):
    classes: ClassVar[tuple[str, ...]] = CLASSES
    counts: ClassVar[dict[str, tuple[int, int] | None]] = {"cifar100": (50000, 10000)}
    downloads: ClassVar[tuple[str, ...]] = ("CIFAR100",)
    folder: ClassVar[str] = "cifar100"
    forms: ClassVar[dict[str, tuple[Form, ...]]] = {
        "cifar100": (
            _python("cifar-100-python"),
            _python("cifar-100-python.tar.gz"),
            _binary("cifar-100-binary"),
            _binary("cifar-100-binary.tar.gz"),
            arrays("cifar100.npz", read=read_npz),
            arrays("cifar100_*.npz", read=read_npz),
            *class_folders(ARCHIVES, CLASSES),
        )
    }
    origin: ClassVar[str] = (
        "run `bench data fetch cifar100`, or put cifar-100-python.tar.gz or cifar-100-binary.tar.gz there, "
        "or pictures as cifar100/train/CLASS/*.png and cifar100/test/CLASS/*.png"
    )
