"""The bytes that the shipped methods send, worked out by hand from their papers."""

from __future__ import annotations

from typing import NamedTuple


class Traffic(NamedTuple):
    """Bytes of all clients together."""

    up: tuple[int, int]
    """In the first and the second round."""
    down: tuple[int, int]
    prelude: tuple[int, int] = (0, 0)
    """Up and down."""


FLOAT = 4
MODEL = 3 * FLOAT * (6 * 8 + 8 + 8 * 3 + 3)  # the tiny MLP, for three clients
CLASSES = 3 * FLOAT * 3  # a number for every class
MEANS = 3 * FLOAT * 3 * 8  # a point in the space of features for every class
CHANNELS = 3 * FLOAT * 8  # a number for every feature
AVERAGED = FLOAT * (1 + 2 + 1) * (6 + 3)  # means of five samples out of 7, 12 and 5, with their labels
ADAPTER = 3 * FLOAT * 2 * (6 * 6 + 6)
PROMPTS = (
    3
    * FLOAT
    * sum(
        (
            2 * 8,  # queries
            2 * 8 + 2 * 6 + 2 * 8,  # three norms: of the queries, the names and what was seen
            8 * 8 + 2 * 8 * 6 + 3 * 8 + 8 * 8 + 8,  # attention: what queries and names become, and its output
            8 * 32 + 32 + 32 * 8 + 8,  # two linear layers
        )
    )
)
"""FedCLIP's and FedTPG's trained parts, of the tiny stand-ins for a CLIP model."""
GENERATOR = 3 * (FLOAT * (256 * (32 + 3) + 256 + 8 * 256 + 8) + 8) + CLASSES  # a counter and label shares
BODY = 3 * FLOAT * (6 * 8 + 8)  # the tiny MLP without its classifier
HEAD = MODEL - BODY
CENTRES = MEANS + CLASSES
# The tiny transformer: two blocks with branches of rank 2 on 8 → 8 and 16 → 8, and the head.
ADAPTERS = 3 * FLOAT * (2 * 2 * (8 + 8 + 16 + 8) + 8 * 3 + 3)

MODEL_BOTH_WAYS = Traffic(up=(MODEL, MODEL), down=(MODEL, MODEL))
GEOMETRY = (
    8 * (8 + 8 + 6 * 8 + 6 * 6 * 8) + 3 * 8,
    3 * (3 * 6 * 4 + 3 * 6 * 6 * 4 + 3),
)
"""Up: 3 + 3 + 2 classes with number, count, mean and covariance, and 3 counts of withheld classes.
Down: eigenvalues, eigenvectors, and a flag per class."""
NOTHING = Traffic(up=(0, 0), down=(0, 0))
TRAFFIC = {
    "aligned+fedavg": MODEL_BOTH_WAYS,
    "aligned+moon": MODEL_BOTH_WAYS,
    "apfl": MODEL_BOTH_WAYS,
    "central": NOTHING,
    "ditto": MODEL_BOTH_WAYS,
    "dp+fedavg": MODEL_BOTH_WAYS,
    "fedadagrad": MODEL_BOTH_WAYS,
    "fedadam": MODEL_BOTH_WAYS,
    "fedala": MODEL_BOTH_WAYS,
    "fedavg": MODEL_BOTH_WAYS,
    "fedavgm": MODEL_BOTH_WAYS,
    "fedclip": Traffic(up=(ADAPTER, ADAPTER), down=(ADAPTER, ADAPTER)),
    "feddyn": MODEL_BOTH_WAYS,
    "fedfa": Traffic(up=(MODEL + CHANNELS, MODEL + CHANNELS), down=(MODEL + CHANNELS, MODEL + CHANNELS)),
    "fedga": Traffic(up=(MODEL + 3 * FLOAT, MODEL + 3 * FLOAT), down=(MODEL, MODEL)),
    "fedgen": Traffic(up=(MODEL + CLASSES, MODEL + CLASSES), down=(MODEL, MODEL + GENERATOR)),
    "fedlora": Traffic(up=(ADAPTERS, ADAPTERS), down=(ADAPTERS, ADAPTERS)),
    "fedlsa": Traffic(up=(MODEL, MODEL), down=(MODEL + MEANS, MODEL + MEANS)),
    "fedmix": MODEL_BOTH_WAYS._replace(prelude=(AVERAGED, 3 * AVERAGED)),
    "fedntd": MODEL_BOTH_WAYS,
    "fedpac": Traffic(  # up also h, of the size of the centres, and v
        up=(MODEL + CENTRES + MEANS + 3 * FLOAT,) * 2, down=(MODEL + CENTRES,) * 2
    ),
    "fedper": Traffic(up=(BODY, BODY), down=(BODY, BODY)),
    "fedproto": Traffic(up=(MEANS + CLASSES, MEANS + CLASSES), down=(0, MEANS + CLASSES)),
    "fedproto_avg": Traffic(
        up=(MODEL + MEANS + CLASSES, MODEL + MEANS + CLASSES), down=(MODEL, MODEL + MEANS + CLASSES)
    ),
    "fedprox": MODEL_BOTH_WAYS,
    "fedtgp": Traffic(up=(MEANS + CLASSES, MEANS + CLASSES), down=(0, MEANS + CLASSES)),
    "fedtgp_avg": Traffic(
        up=(MODEL + MEANS + CLASSES, MODEL + MEANS + CLASSES), down=(MODEL, MODEL + MEANS + CLASSES)
    ),
    "fedtpg": Traffic(up=(PROMPTS, PROMPTS), down=(PROMPTS, PROMPTS)),
    "fedrep": Traffic(up=(BODY, BODY), down=(BODY, BODY)),
    "fedrod": MODEL_BOTH_WAYS,
    "fedsdg": Traffic(up=(ADAPTERS, ADAPTERS), down=(ADAPTERS, ADAPTERS)),
    "fedyogi": MODEL_BOTH_WAYS,
    "ggeur+fedavg": MODEL_BOTH_WAYS._replace(prelude=GEOMETRY),
    "ggeur+scaffold": Traffic(up=(2 * MODEL, 2 * MODEL), down=(2 * MODEL, 2 * MODEL), prelude=GEOMETRY),
    "lg_fedavg": Traffic(up=(HEAD, HEAD), down=(HEAD, HEAD)),
    "local": NOTHING,
    "moon": MODEL_BOTH_WAYS,
    "per_fedavg": MODEL_BOTH_WAYS,
    "pfedme": MODEL_BOTH_WAYS,
    "scaffold": Traffic(up=(2 * MODEL, 2 * MODEL), down=(2 * MODEL, 2 * MODEL)),
}
"""For three clients with the first tiny model that the method accepts. New methods need no row here."""
SHIPPED = tuple(TRAFFIC)
