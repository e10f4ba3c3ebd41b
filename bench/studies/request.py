"""What a user asks of `bench study`, from the command line or from Python."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Literal

from bench.errors import UserError
from bench.request import Option, at_least, shared
from bench.runs.request import BOTH, EVERY, CellOptions, RunRequest
from bench.search.request import ALL, AUTO, SEEDS, SearchOptions, TuneRequest, first_seeds

if TYPE_CHECKING:
    from bench.suite.model import Suite


@dataclass(frozen=True)
class StudyRequest(SearchOptions, CellOptions):
    """Suites, the methods to compare on them, and the seeds of searches and tables."""

    suites: Annotated["Sequence[str | Suite]", Option("Names or files of suites, separated by commas.")]
    methods: Annotated["Sequence[str] | None", Option("Only these methods: a,b,c.")] = None
    seeds: Annotated[int, Option("Number of seeds of the tables.")] = 5
    search_seeds: Annotated[int | Literal["auto"], Option(SEEDS)] = AUTO
    shared: Annotated[
        bool,
        Option("Also choose one setting for all suites (see `bench tune --shared`), as further rows."),
    ] = False

    def __post_init__(self) -> None:
        super().__post_init__()
        at_least(1, seeds=self.seeds, search_seeds=first_seeds(self.search_seeds))
        if not self.suites:
            raise UserError("--suite is empty; give a name, or several separated by commas")
        names = [suite.suite for suite in self.loaded]
        if self.shared and len(names) < 2:
            raise UserError("--shared chooses one setting for several suites; give them as --suite A,B")
        if twice := [name for name in names if names.count(name) > 1]:
            raise UserError(f"--suite names '{twice[0]}' twice; give each suite once")

    @cached_property
    def loaded(self) -> "Sequence[Suite]":
        """The suites as their files have them; every file is read once."""
        from bench.suite.loading import load_suite
        from bench.suite.model import Suite

        return [each if isinstance(each, Suite) else load_suite(each) for each in self.suites]

    def tuning(self, suite: "Suite", time_budget: str | None = None) -> TuneRequest:
        """The searches of one suite, all methods with the same budget."""
        own = {
            "suite": suite,
            "methods": [ALL] if self.methods is None else self.methods,
            "seeds": self.search_seeds,
            "time_budget": time_budget or self.time_budget,
            "shared": False,
        }
        return TuneRequest(**shared(self, TuneRequest) | own)

    def run(self, suite: "Suite", tuned: bool = True) -> RunRequest:
        """The run of one suite: tuned rows (and shared ones) besides default rows, or only the latter."""
        tracks = EVERY if self.shared else BOTH
        return RunRequest(**shared(self, RunRequest) | {"suite": suite, "tuned": tracks if tuned else False})
