"""FedCLIP: Lu et al., 2023: FedAvg of the adapter of `tests/references/clip.py`, by Adam with rate 5e-5."""

from tests.references.plain import Case, FedAvg

RATE = {"name": "adam", "lr": 0.01, "weight_decay": 0.2}


class Reference(FedAvg):
    cases = (Case(model="adapter"), Case({"optimiser": RATE, "weighting": "uniform"}, model="adapter"))

    def start(self) -> None:
        if self.settings["optimiser"]["lr"] != RATE["lr"]:
            used = self.given.optimiser_settings
            assert (used["name"], used["lr"], used["weight_decay"]) == ("adam", 5e-5, 0.2), (
                "the paper's values"
            )
