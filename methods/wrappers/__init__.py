"""Methods that go around another one: `dp+scaffold` is the file `dp.py` here around SCAFFOLD."""
