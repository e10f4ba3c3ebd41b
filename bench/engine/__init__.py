"""The round loop and the hosts that do the clients' work: in order, stacked, or on Ray actors."""
