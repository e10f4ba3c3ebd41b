"""LG-FedAvg: clients share the classifier and keep a representation of their own.

Liang et al., "Think Locally, Act Globally: Federated Learning with Local and Global Representations", NeurIPS
2019 workshop, arXiv 2001.01523, with supervised local representations. The model is a body (encoder and
projector) and a head (the classifier). Client: starts from its own body of its last round (the common initial
body before its first) and the head it was sent, takes the round's steps on CE over both at once, sends the
head and keeps the body. Server: FedAvg's average of the heads. A client predicts with its own body and the
server's head.

Deviations: the public code first trains FedAvg for many rounds and begins from its model; here all begin from
the initial weights. No defaults of its own: epochs, batch size and optimiser are the suite's.
"""

from methods.base import Tree
from methods.fedavg import FedAvg
from methods.shared.own_part import OwnPart


class LGFedAvg(OwnPart, FedAvg):
    label = "LG-FedAvg"
    neutral = "has no global representation"

    def own(self, model: Tree) -> Tree:
        return model.without(model.part("classifier"))
