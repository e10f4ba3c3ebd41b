"""Centralised training: one client holds the data of all clients. The upper bound of every table.

The same epochs, batch size and optimiser as a client's, on the union of the clients' training data.
"""

from methods.local import Local


class Central(Local):
    label = "Central"
    pools_data = True
