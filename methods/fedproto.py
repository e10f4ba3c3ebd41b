"""FedProto: only class prototypes travel; every client keeps a model of its own.

Tan et al., "FedProto: Federated Prototype Learning across Heterogeneous Clients", AAAI 2022, Algorithm 1.
Client: CE + λ · mean_i ‖z_i − P_{y_i}‖² / D over the samples whose class has a global prototype (D = width of
z); afterwards its prototypes are its class means of z under its final model. Server: per class the mean over
the clients that hold it, or the mean weighted by count; a class that nobody of the round holds keeps its
prototype. In the first round there is no prototype, so no term. Samples without one count 0 in the mean.
The pull acts on each sample and is squared, as in the public code; Eq. 6-8 print it for the client's class
means, without the square (`pull`, `squared`). Prototypes are means under the final model, for which one pass
over a client's samples is enough; for several prototypes per class there is `fpl`.

A client predicts the class whose global prototype is nearest to z, as in the paper, or with its own
classifier (`prediction`). All clients begin with the same weights.
"""

from pydantic import Field

from methods.shared.mean_prototypes import MeanPrototypes
from methods.shared.prototypes import Prediction, PrivateNetworks


class FedProto(MeanPrototypes, PrivateNetworks):
    label = "FedProto"
    neutral = "has no server model"

    lam: float = Field(default=1.0, ge=0)
    """λ, the weight of the pull; 1 as in the paper, where the authors' code uses 0.1 on CIFAR-10."""
    prediction: Prediction = "prototypes"
    """The nearest prototype's class (as in the paper), or the classifier's; the other is recorded too."""
