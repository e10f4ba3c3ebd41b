"""FedProto with averaged weights: FedAvg whose clients pull features to the global class means.

Tan et al., "FedProto: Federated Prototype Learning across Heterogeneous Clients", AAAI 2022, Eq. 3-8, in the
form that later papers compare with: prototypes and weights both travel. Client:
CE + λ · mean_i ‖z_i − P_{y_i}‖² / D over the samples whose class has a global prototype (D = width of z);
afterwards its prototypes are its class means of z under its final model. Server: the mean over the clients
that hold the class, or the mean weighted by count. In the first round there is no prototype, so no term.
The averaged classifier predicts, as in those papers; the nearest prototype is recorded beside it.
λ = 0 is FedAvg with prototypes that are not used.
"""

from pydantic import Field

from methods.shared.mean_prototypes import MeanPrototypes
from methods.shared.prototypes import AveragedNetworks, Prediction


class FedProtoAvg(MeanPrototypes, AveragedNetworks):
    label = "FedProto (avg)"
    neutral = {"lam": 0.0}

    lam: float = Field(default=2.0, ge=0)
    """λ, the weight of the pull; 2 as in the comparisons of the FedLSA and GGEUR papers."""
    prediction: Prediction = "classifier"
    """The averaged classifier's class (as in those papers), or the nearest prototype's; both are recorded."""
