"""FedPFT: clients describe each class by a Gaussian mixture, once; the server trains a classifier on draws.

Beitollahi et al., "Parametric Feature Transfer: One-shot Federated Learning with Foundation Models", 2024
(arXiv 2402.01862), on features z of a frozen encoder. Before round 1 (recorded as round 0), up: for each
class of a client with at least `min_class_count` samples, their number and the weights, means and covariances
of a mixture of at most `components` Gaussians, in single precision. Server: for every client and class as
many features as the client has samples, drawn from the mixture, and `server_steps` steps of Adam on their
cross-entropy from the initial classifier, in mini-batches of `server_batch`, reshuffled when all have been
seen. In the rounds nothing is sent and nothing changes.

The mixtures are fitted in double precision by `em_steps` steps of expectation and maximisation, which begin
with the maximisation for samples assigned to the nearest of `components` random samples. `variance_floor` is
added to every variance (to the diagonal of a full covariance). Spherical variances are the mean over the
dimensions.

Deviations: a component that stands for one sample would upload that sample as its mean. So there are at most
n/2 components, and if the responsibilities of one sum to less than 2, the fit is repeated with one component
fewer. The authors' code stops EM by tolerance and trains with AdamW; the numbers of steps and the learning
rate here are ours.
"""

import torch
from pydantic import Field

from methods.base import Adam, Batches, Message, Prelude, Reply, Samples, State, Task
from methods.shared.features import embedded
from methods.shared.mixtures import Covariance, Mixture, drawn, fitted
from methods.shared.one_round import OneRound
from methods.shared.preludes import Upload
from methods.shared.virtual import trained_classifier


class FedPFT(OneRound):
    label = "FedPFT"

    components: int = Field(default=10, ge=1)
    """K, the most Gaussians per class and client; the paper varies it from 1 to 100."""
    covariance: Covariance = "diagonal"
    """The form of the covariances; the paper compares all three."""
    samples_per_class: int | None = Field(default=None, ge=1)
    """Features drawn per class and client; None: as many as the client has samples, as in the paper."""
    em_steps: int = Field(default=30, ge=0)
    """Steps of expectation and maximisation; ours."""
    variance_floor: float = Field(default=1e-6, gt=0)
    """What is added to variances; 1e-6 as in scikit-learn, which the authors use."""
    server_steps: int = Field(default=1000, ge=0)
    """Steps of the server on the drawn features; ours."""
    server_batch: int = Field(default=64, ge=1)
    """Drawn features per step; ours."""
    server_lr: float = Field(default=1e-3, gt=0)
    """The learning rate of these steps, with Adam; ours."""
    min_class_count: int = Field(default=2, ge=2)
    """Classes of which a client has fewer samples are not described."""

    def prelude(self, task: Task) -> Prelude:
        return [MixturesUp(self)]


class MixturesUp(Upload):
    """Clients send mixtures; the server draws from each and trains the classifier on all draws.

    In a reply, `component_classes` says to which class a component belongs.
    """

    def __init__(self, method: FedPFT) -> None:
        self.method = method

    def local(self, task: Task, client: State, message: Message, batches: Batches) -> tuple[Message, State]:
        method = self.method
        own = embedded(task, task.initial, batches)
        z, y = own.x.double(), own.y
        counts = y.bincount(minlength=task.classes)
        shown = torch.nonzero(counts >= method.min_class_count)[:, 0]
        mixtures = [
            fitted(
                z[y == label],
                method.components,
                method.covariance,
                method.em_steps,
                method.variance_floor,
                task.generator("mixture", label),
            )
            for label in shown.tolist()
        ]
        sizes = torch.tensor([len(mixture.weights) for mixture in mixtures], dtype=torch.long)
        parts = zip(*mixtures, strict=True) if mixtures else ((z.new_zeros(0),),) * 3
        described = {key: torch.cat(part).float() for key, part in zip(Mixture._fields, parts, strict=True)}
        classes = shown.repeat_interleave(sizes.to(shown.device))
        return {"classes": shown, "counts": counts[shown], "component_classes": classes, **described}, {}

    def fold(self, task: Task, server: State, reply: Reply) -> State:
        content = reply.content
        mixture = Mixture(*(content[key] for key in Mixture._fields))
        before = server.get("virtual")
        xs, ys = ([before["x"]], [before["y"]]) if before else ([], [])
        for label, count in zip(content["classes"].tolist(), content["counts"].tolist(), strict=True):
            own = Mixture(*(part[content["component_classes"] == label] for part in mixture))
            draw = task.generator("virtual", reply.client, label)
            xs.append(drawn(own, self.method.samples_per_class or count, draw))
            ys.append(torch.full((len(xs[-1]),), label, device=content["classes"].device))
        return server | {"virtual": {"x": torch.cat(xs), "y": torch.cat(ys)}} if xs else server

    def finish(self, task: Task, server: State) -> State:
        if "virtual" not in server:
            return server
        method, samples = self.method, Samples(**server["virtual"])
        classifier = trained_classifier(
            task,
            server["model"],
            samples,
            method.server_steps,
            method.server_batch,
            Adam(lr=method.server_lr),
            task.generator("virtual order"),
        )
        return {"model": server["model"] | classifier}
