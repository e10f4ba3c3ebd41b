"""LG-FedAvg: Liang et al., 2019: the classifier is shared, the representation stays with the client."""

from tests.references.methods.fedper import Reference as FedPer


class Reference(FedPer):
    private = ("encoder", "projector")
    shared = ("classifier",)
