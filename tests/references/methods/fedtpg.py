"""FedTPG: Qiu et al., ICLR 2024: FedAvg of the prompt generator of `tests/references/clip.py`."""

from tests.references.plain import Case, FedAvg

FASTER = {"name": "sgd", "lr": 0.05, "momentum": 0.9}


class Reference(FedAvg):
    cases = (Case(model="prompts"), Case({"optimiser": FASTER, "weighting": "uniform"}, model="prompts"))

    def start(self) -> None:
        if self.settings["optimiser"]["lr"] != FASTER["lr"]:
            used = self.given.optimiser_settings
            assert (used["name"], used["lr"], used["momentum"]) == ("sgd", 3e-3, 0.9), "the paper's values"
