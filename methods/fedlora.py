"""FedLoRA: FedAvg of the LoRA branches and the head on a frozen backbone.

Zhang et al., "FedPETuning: When Federated Learning Meets the Parameter-Efficient Tuning Methods of
Pre-trained Language Models", Findings of ACL 2023: only what is trained travels. On a model with LoRA
branches this is FedAvg itself; the name keeps a table from saying FedAvg where the backbone never moves, and
other models are refused.
"""

from methods.base import Task
from methods.fedavg import FedAvg
from methods.modules.lora import require_adapters


class FedLoRA(FedAvg):
    label = "FedLoRA"

    def check(self, task: Task) -> None:
        require_adapters(task.model)
