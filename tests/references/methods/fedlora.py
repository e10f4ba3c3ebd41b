"""FedLoRA: FedAvg of the LoRA branches and the head on a frozen transformer."""

from tests.references.plain import Case, FedAvg


class Reference(FedAvg):
    cases = (Case(model="vit"), Case({"weighting": "uniform"}, model="vit", optimiser="adam", tolerance=1e-7))
