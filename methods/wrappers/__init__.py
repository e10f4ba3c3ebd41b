"""Methods that go around another one: `ggeur+scaffold` is the file `ggeur.py` here around SCAFFOLD."""
