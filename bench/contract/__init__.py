"""The contract that every method must satisfy, as code: behind `bench check`, `bench.check` and the tests.

report = check(MyMethod)      # or check("fedprox"), check("./my_method.py")
report.passed, report.findings
standing("./my_method.py")    # "passed", "failed" or "unchecked"
"""

from bench.contract.checking import VERSION, check
from bench.contract.pass_cache import passed, standing
from bench.contract.report import Finding, Report, Verdict

__all__ = ["VERSION", "Finding", "Report", "Verdict", "check", "passed", "standing"]
