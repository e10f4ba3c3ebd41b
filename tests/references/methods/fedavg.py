"""FedAvg: McMahan et al., AISTATS 2017, Algorithm 1; all of it is in `tests/references/plain.py`."""

from tests.references.plain import Case, FedAvg


class Reference(FedAvg):
    cases = (
        Case(),
        Case({"weighting": "uniform"}, optimiser="adam"),
        Case(model="cnn", optimiser="clipped"),
        Case(model="norm", optimiser="plain", batch_size=6),
    )
