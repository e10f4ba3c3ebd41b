"""`bench tune`: searches for hyperparameters.

In the order of a search: `request` is what the user asks for, `plan` the search of one method. `space` says
what can be tried, `suggest` what to try next, `journal` what was tried. In the driver, `searches` runs
several searches with Ray Tune, each of them a `running_search`; in the processes, `trainable` runs each
`trial`. `halving` stops trials early. `finish` chooses the best one, and `tuned` writes and reads the choice.
"""
