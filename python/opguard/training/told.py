"""opguard.invariant(name, holds, **values): what the program says of itself, observed."""

from opguard.training import sink, where


@sink.guarded
def tell(name, holds, values):
    said = []
    for key, value in values.items():
        said += [str(key), value if isinstance(value, (bool, int, float, str)) else str(value)[:80]]
    sink.see("told", (str(name), bool(holds), said, where.place(3)))
