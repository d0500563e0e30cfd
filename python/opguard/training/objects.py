"""Numbers of objects, counted from 0 as they are met; none is kept alive.

Counterexample: an id is another object's once the first has gone, so an entry holds a weak reference too."""

import weakref


class Numbers:
    def __init__(self):
        self._known = {}  # id -> (weak reference, number)
        self._count = 0

    def of(self, thing):
        """(its number, was it met just now)"""
        entry = self._known.get(id(thing))
        if entry is not None and entry[0]() is thing:
            return entry[1], False
        try:
            reference = weakref.ref(thing)
        except TypeError:
            reference = lambda kept=thing: kept  # without weak references, as some samplers are
        number = self._count
        self._count += 1
        self._known[id(thing)] = (reference, number)
        return number, True

    def known(self, thing):
        """Its number; None where it was never met."""
        entry = self._known.get(id(thing))
        return entry[1] if entry is not None and entry[0]() is thing else None

    def living(self):
        found = []
        for reference, number in list(self._known.values()):
            thing = reference()
            if thing is not None:
                found.append((number, thing))
        return sorted(found, key=lambda pair: pair[0])


modules = Numbers()
optimizers = Numbers()
parameters = Numbers()
loaders = Numbers()
others = Numbers()  # schedulers, scalers, samplers
