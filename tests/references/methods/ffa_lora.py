"""FFA-LoRA: Sun et al., ICLR 2024: FedAvg of B and the head, with A as it was drawn."""

from tests.references.plain import Case, FedAvg


class Reference(FedAvg):
    cases = (Case(model="vit"), Case({"weighting": "uniform"}, model="vit", optimiser="adam", tolerance=1e-7))

    def start(self) -> None:
        for _, layer in self.model.adapted():
            layer.lora_A.requires_grad_(False)
