"""FedTGP with averaged weights: FedAvg whose clients pull features to prototypes that the server trains.

Zhang et al., "FedTGP: Trainable Global Prototypes with Adaptive-Margin-Enhanced Contrastive Learning for Data
and Model Heterogeneity in Federated Learning", AAAI 2024, in the form that FedLSA's tables compare with:
prototypes and weights both travel. Client: CE + λ · mean_i ‖z_i − P_{y_i}‖² / D, then its class means p of z
under its final model. Server: weights are averaged; P = Θ(R) is trained on all class means p by
CE(−(‖p − P‖ + δ · onehot(y)), y), where δ is the largest over the classes of the distance to the nearest
other class, at most 100 (see `fedtgp`, also for the deviations). In the first round there is no prototype, so
no term. The averaged classifier predicts; the nearest prototype is recorded beside it. λ = 0 is FedAvg with
prototypes that are not used.
"""

from pydantic import Field

from methods.shared.prototypes import AveragedNetworks, Prediction
from methods.shared.trained_prototypes import TrainedPrototypes


class FedTGPAvg(TrainedPrototypes, AveragedNetworks):
    label = "FedTGP (avg)"
    neutral = {"lam": 0.0}

    lam: float = Field(default=10.0, ge=0)
    """λ, the weight of the pull; 10 as in the paper."""
    prediction: Prediction = "classifier"
    """The averaged classifier's class, or the nearest prototype's; both are recorded."""
