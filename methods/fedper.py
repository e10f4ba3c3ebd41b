"""FedPer: clients share the representation and keep a classifier of their own, both trained together.

Arivazhagan et al., "Federated Learning with Personalization Layers", arXiv 1912.00818, 2019. The model is a
body (encoder and projector) and a head (the classifier). Client: starts from the body it was sent and its own
head of its last round (the common initial head before its first), takes the round's steps on CE over both at
once, sends the body and keeps the head. Server: FedAvg's average of the bodies. A client predicts with the
server's body and its own head. FedRep differs in training head and body one after the other.

Deviations: the paper may keep more layers than the classifier; here it is the classifier alone. No defaults
of its own: epochs, batch size and optimiser are the suite's.
"""

from methods.base import Tree
from methods.fedavg import FedAvg
from methods.shared.own_part import OwnPart


class FedPer(OwnPart, FedAvg):
    label = "FedPer"
    neutral = "has no global classifier"

    def own(self, model: Tree) -> Tree:
        return model.part("classifier")
