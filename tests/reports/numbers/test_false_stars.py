"""Stars where there is no difference: at most one table in twenty, by simulation."""

from scripts.simulate_stars import Shape, simulate


def test_few_tables_without_a_difference_have_a_star_and_many_had() -> None:
    rates = simulate(tables=300, shape=Shape())
    assert rates.over_seeds <= 0.075  # 5 % and two standard errors of 300 tables
    assert rates.over_seeds_and_domains > 0.2


def test_more_domains_make_the_old_test_worse_and_leave_ours() -> None:
    rates = simulate(tables=150, shape=Shape(domains=16), seed=1)
    assert rates.over_seeds <= 0.085 and rates.over_seeds_and_domains > 0.5
