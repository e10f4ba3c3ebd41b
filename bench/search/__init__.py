"""`bench tune`: searches for hyperparameters.

In the order of a search: `request` is what the user asks for, `plan` the search of one method. `space` says
what can be tried, `suggest` what to try next, `journal` what was tried. In the driver, `searches` runs
several searches with Ray Tune, each of them a `running_search`; in the processes, `trainable` runs each
`trial`. `halving` stops trials early. `selection` chooses the best one, for which `further_seeds` may have to
be run, `finish` concludes the search, and `tuned` writes and reads the choice. `bounds` says which values are
at an end of their range, and `widening` makes such ranges wider.
"""
