"""FedTGP: the server trains prototypes that are far apart, and clients pull their features to them.

Zhang et al., "FedTGP: Trainable Global Prototypes with Adaptive-Margin-Enhanced Contrastive Learning for Data
and Model Heterogeneity in Federated Learning", AAAI 2024. Only prototypes travel; every client keeps a model
of its own. Client: CE + λ · mean_i ‖z_i − P_{y_i}‖² / D, then its class means p of z under its final model.
Server: P = Θ(R) with an embedding R (classes × D) and a two-layer MLP Θ: D → D → D, both kept between rounds,
trained by SGD on all class means p of the round, of class y, by
    CE(−(‖p − P‖ + δ · onehot(y)), y),
with δ the largest over the classes of the distance to the nearest other class (between the means of p over
the clients), at most 100. In the first round there is no prototype, so no term. A client predicts the class
whose prototype is nearest to z, as in the public code, or with its own classifier (`prediction`).

Deviations: squared distances are clamped at 1e-12 before the square root, whose slope is infinite at 0; a
class that no client has ever held has no prototype, where the public code uses the untrained one.
"""

from pydantic import Field

from methods.shared.prototypes import Prediction, PrivateNetworks
from methods.shared.trained_prototypes import TrainedPrototypes


class FedTGP(TrainedPrototypes, PrivateNetworks):
    label = "FedTGP"
    neutral = "has no server model"

    lam: float = Field(default=10.0, ge=0)
    """λ, the weight of the pull; 10 as in the paper."""
    prediction: Prediction = "prototypes"
    """The nearest prototype's class (as in the public code), or the classifier's; both are recorded."""
