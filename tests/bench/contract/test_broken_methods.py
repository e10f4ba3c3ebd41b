"""The contract notices methods that break it, and says how."""

from __future__ import annotations

from typing import Annotated, Any

import pytest

from bench.contract import check
from bench.contract.method_under_test import MethodUnderTest
from bench.contract.report import Finding
from bench.contract.rules import RULES
from methods.core.hyperparameters import Role
from methods.fedprox import FedProx
from tests.kit import contract_broken as broken
from tests.kit import contract_impure as impure

RULE = {rule.name: rule for rule in RULES}
CASES = [
    (broken.NoLabel, "declaration", "has no label of its own"),
    (broken.Incomplete, "declaration", "does not define aggregate"),
    (broken.NotFrozen, "hyperparameters", "can be changed after the object is made"),
    (broken.TakesAnything, "hyperparameters", "an unknown hyperparameter is accepted"),
    (broken.TakesNaN, "hyperparameters", "mu = nan is accepted"),
    (broken.BadDefault, "hyperparameters", "written to a record and read again, are refused: mu = -1.0"),
    (broken.NoDefault, "hyperparameters", "mu has no default"),
    (
        broken.RefusesAll,
        "rounds",
        "refuses every small model that the contract tries (mlp: needs a telescope",
    ),
    (broken.Raises, "rounds", "raises KeyError: 'no_such_entry' (contract_broken.py, line "),
    (broken.LearnsNothing, "rounds", "a round does not change what the method predicts"),
    (broken.ReturnsReplyAlone, "rounds", "local does not return two things"),
    (broken.ObservesTensor, "rounds", "observe returns something else than plain numbers (size: Tensor)"),
    (broken.SendsNumber, "tensors", "'weight' in the reply of a client is a float"),
    (broken.Grows, "tensors", "private state changes its shape in a round (history)"),
    (broken.UnequalReplies, "tensors", "differ in shape between clients (losses)"),
    (broken.OwnStart, "start of a round", "do not start from what the server sent in this round"),
    (broken.StartsHalfway, "start of a round", "do not start from what the server sent in this round"),
    (broken.NeedsEveryClass, "rounds", "clients diverge in round 1 on plain data"),
    (broken.OneAfterTheOther, "participation", "depends on which clients worked before it"),
    (impure.EditsMessage, "nothing in place", "is changed in place (model.classifier.bias)"),
    (impure.AveragesInPlace, "nothing in place", "in a client's reply is changed in place"),
    (impure.EditsData, "nothing in place", "a client's data is changed in place"),
    (impure.CountsOnClass, "purity", "something is kept outside of the states"),
    (impure.CountsOnObject, "purity", "the method's object changes during a run"),
    (impure.GlobalNoise, "randomness", "depend on a global random generator"),
    (impure.NumpyNoise, "randomness", "depend on a global random generator"),
    (impure.WastesRandomness, "randomness", "the global random generator of torch is used"),
    (impure.GlobalNoise, "stacking", "draw random numbers with batch.uniform"),
    (impure.CountsPadding, "padding", "lets padding count"),
    (impure.CountsPaddingAfterTraining, "padding", "lets padding count: 0.reply.mean"),
    (impure.CountsPadding, "stacking", "so padded samples or steps count"),
    (impure.CannotBeStacked, "stacking", "local cannot be stacked"),
    (impure.OtherWhenStacked, "stacking", "stacked clients differ from clients in order"),
    (impure.OtherInSweeps, "sweeps", "mu cannot be a tensor with a value per cell (they differ by up to "),
    (impure.BranchesOnNumber, "sweeps", "mu cannot be a tensor with a value per cell (RuntimeError: "),
    (impure.BranchesOnNumber, "sweeps", "declare it Annotated[float, Role.BRANCH]"),
    (impure.OtherRoundsInSweeps, "sweeps", "copies is declared with Role.SAMPLES, but rounds depend on it"),
    (impure.OtherSamplesInSweeps, "sweeps", "scale makes a difference to samples"),
    (impure.HidesFromRounds, "stacking", "local cannot be stacked"),
    (impure.OtherPreludeInSweeps, "sweeps", "scale makes a difference to an exchange before round 1"),
    (impure.PredictsOtherInSweeps, "sweeps", "bias cannot be a tensor with a value per cell (they predict"),
    (
        impure.ServerDecides,
        "sweeps",
        "aggregate cannot be computed for several cells at once (Runtime",
    ),
    (impure.ServerDecides, "sweeps", "set stacks_server = False"),
    (impure.PredictsByValue, "sweeps", "set stacks_predictions = False"),
    (impure.ReadsSeed, "sweeps", "task.seed differs between cells of a stack: set reads_seed = True"),
    (impure.PullsToInitial, "sweeps", "task.initial differs between cells of a stack: set reads_seed = True"),
    (broken.OneAfterTheOther, "hosts", "clients on two hosts come to other results than on one"),
    (impure.CountsOnObject, "resume", "a resumed run comes to other states"),
    (broken.SendsNumber, "traffic", "messages must consist of tensors"),
    (
        impure.Smuggles,
        "traffic",
        "aggregate uses something that is neither in the server's state nor in a reply",
    ),
    (impure.SendsSamples, "privacy", "'example' in a client's reply has numbers of the client's raw samples"),
    (impure.TellsOthers, "privacy", "one client's private state changes what others are sent or reply"),
    (broken.HidesNaN, "divergence", "0 clients are left out"),
    (broken.HidesNaNBeforeRound1, "divergence", "infinite inputs is not left out before round 1"),
    (broken.SendsInRounds, "traffic", "has one_round = True, but something is sent in the rounds"),
    (
        broken.NotFedAvg,
        "neutral setting",
        "at its neutral setting (mu = 0.0) the server's model is not FedAvg's",
    ),
    (broken.InheritsNeutral, "neutral setting", "neutral is inherited: declare it in the class"),
    (broken.UnknownNeutral, "neutral setting", "neutral is refused: nu"),
    (broken.NoNeutral, "neutral setting", "does not say where it is FedAvg"),
]


def findings(kind: type[Any], rule: str, **hyperparameters: Any) -> tuple[Finding, ...]:
    return RULE[rule].applied_to(MethodUnderTest(kind, hyperparameters)).findings


@pytest.mark.parametrize(
    ("kind", "rule", "words"), [pytest.param(*case, id=f"{case[0].__name__}-{case[1]}") for case in CASES]
)
def test_a_method_that_breaks_a_rule_is_told_how(kind: type[Any], rule: str, words: str) -> None:
    found = findings(kind, rule)
    assert words in " ".join(finding.sentence for finding in found)
    assert all(f"see CONTRIBUTING.md, '{RULE[rule].section}'" in str(finding) for finding in found)


def test_every_rule_has_a_method_that_breaks_it() -> None:
    assert {rule for _, rule, _ in CASES} == set(RULE)


@pytest.mark.parametrize(
    "sent",
    ["itself", "a copy", "among others", "rearranged", "one number", "after training", "in the model"],
)
def test_a_reply_with_private_state_is_noticed(sent: str) -> None:
    (finding, *_) = findings(impure.Personal, "privacy", sent=sent)
    assert "has numbers of 'bias', which is part of its private state" in finding.sentence


def test_a_reply_without_private_state_is_not_suspected() -> None:
    assert findings(impure.Personal, "privacy") == ()


@pytest.mark.parametrize(
    "kind",
    [impure.DeclaresBranch, impure.DeclaresServer, impure.DeclaresPredictions, impure.DeclaresSeed],
)
def test_what_cannot_be_stacked_may_be_declared(kind: type[Any]) -> None:
    assert findings(kind, "sweeps") == ()


def test_a_needless_declaration_is_no_mistake() -> None:
    class Cautious(FedProx):
        label = "Cautious"
        stacks_server = stacks_predictions = False
        reads_seed = True
        mu: Annotated[float, Role.BRANCH] = 0.1

    assert findings(Cautious, "sweeps") == ()


def test_a_learning_rate_of_its_own_is_not_suspected() -> None:
    assert findings(broken.TrainsAtOwnRate, "start of a round") == ()


def test_a_report_names_every_broken_rule_and_no_other() -> None:
    report = check(impure.CountsPadding)
    assert not report.passed
    assert {finding.rule for finding in report.findings} == {"padding", "stacking"}
    assert "padding" in str(report)


def test_where_a_method_does_not_run_the_rules_that_need_it_are_not_applied() -> None:
    report = check(broken.RefusesAll)
    assert {finding.rule for finding in report.findings} == {"rounds"}
    skipped = [verdict for verdict in report.verdicts if verdict.not_applied == "the method does not run"]
    assert len(skipped) == sum(rule.runs_it for rule in RULES)
