"""PromptFL: Guo et al., 2023: FedAvg of the context words of `tests/references/clip.py`."""

from tests.references.plain import Case, FedAvg

FASTER = {"name": "sgd", "lr": 0.5}


class Reference(FedAvg):
    cases = (
        Case({"optimiser": FASTER}, model="context"),
        Case({"optimiser": FASTER, "weighting": "uniform"}, model="context"),
    )
