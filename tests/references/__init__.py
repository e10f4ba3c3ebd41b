"""Plain-PyTorch implementations of all methods, to which the shipped ones are held.

Every file in `methods/` and `wrappers/` here is written from a method's paper and documentation, with
`nn.Module`, `torch.optim` and loops over rounds, clients and batches; nothing in it comes from the package
`methods`. `given.py` has the facts that both sides start from, `harness.py` runs ours and compares.

A new method needs a file of its name with a class `Reference` (see `plain.py` for FedAvg's). Its `cases` say
with which hyperparameters, model and optimiser it is compared.
"""
