"""FedProto's pull around other methods."""

import pytest
from pydantic import ValidationError

from bench.engine.clients.loop import LoopHost
from bench.engine.clients.stacked import StackedHost
from methods.fedavg import FedAvg
from methods.fedproto_avg import FedProtoAvg
from methods.fedprox import FedProx
from methods.fedtgp_avg import FedTGPAvg
from methods.local import Local
from methods.moon import Moon
from methods.scaffold import Scaffold
from methods.wrappers.proto import Proto
from tests.kit.tiny import close, equal, frozen_task, mlp_task, server_after, uneven_clients


def test_around_fedavg_it_is_fedproto_with_averaged_weights() -> None:
    wrapped = server_after(3, Proto(inner=FedAvg(), lam=2.0), mlp_task(), uneven_clients())
    plain = server_after(3, FedProtoAvg(lam=2.0), mlp_task(), uneven_clients())
    assert close(wrapped["inner"]["model"], plain["model"], tolerance=1e-6)
    assert equal(type(plain["model"])({"p": wrapped["known"]}), type(plain["model"])({"p": plain["known"]}))


@pytest.mark.parametrize("inner", [FedProx(mu=1.0), Moon(), Scaffold()])
def test_it_acts_on_other_methods_too(inner: FedAvg) -> None:
    ends = []
    for lam, kind in ((0.0, LoopHost), (5.0, LoopHost), (5.0, StackedHost)):
        server = server_after(3, Proto(inner=inner, lam=lam), mlp_task(), uneven_clients(), kind=kind)
        ends.append(server["inner"]["model"])
    assert equal(ends[0], server_after(3, inner, mlp_task(), uneven_clients())["model"])
    assert not close(ends[0], ends[1], tolerance=1e-4)
    assert close(ends[1], ends[2], tolerance=1e-5)


def test_where_it_makes_no_sense_it_is_refused() -> None:
    for inner in (Local(), FedTGPAvg()):
        with pytest.raises(ValidationError, match="cannot pull the features"):
            Proto(inner=inner)
    with pytest.raises(ValueError, match="frozen encoder"):
        Proto(inner=FedAvg()).check(frozen_task())
