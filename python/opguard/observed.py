"""A log's observations for Python: opguard.read_log(path).observations. The kinds and their fields:
docs/formats/observations.md.

    for row in log.observations.of("api"):      row["fields"]["name"], row["step"], row["event"]

Rows are made as they are asked for."""

from opguard.logs_need import need


class Observations:
    """What was seen of a training beside its operators, a row each: process (index in log.processes), rank, kind, step, event (events of the
    process's log that had ended before), time_ns (the clock of events), fields {name: value}.

    len(observations); for row in observations: a dict; observations.of("update"): rows of one kind; kinds: {kind: count}."""

    COLUMNS = ("process", "rank", "kind", "step", "event", "time_ns", "fields")

    def __init__(self, table, processes, kind=None):
        self._table, self._processes, self._kind = table, processes, kind

    @property
    def kinds(self):
        found = {kind: count for kind, count in self._table.kinds().items() if count}
        return found if self._kind is None else {kind: n for kind, n in found.items() if kind == self._kind}

    def of(self, kind):
        return Observations(self._table, self._processes, kind)

    def __len__(self):
        return sum(self.kinds.values())

    def __iter__(self):
        for process, *rest in self._table.read(self._kind):
            yield dict(zip(self.COLUMNS, (process, self._processes[process].rank, *rest)))

    def __repr__(self):
        return "<opguard.Observations, {:,} rows: {}>".format(len(self), ", ".join("%s %d" % item for item in self.kinds.items()))

    def to_pandas(self):
        """pandas.DataFrame. Of one kind (`observations.of("update").to_pandas()`) each field is a column of objects, so that no bit of a digest
        is rounded away; of all kinds there is a column `fields` of dicts."""
        pandas = need("pandas", "to_pandas")
        rows = list(self)
        if self._kind is None:
            return pandas.DataFrame(rows, columns=list(self.COLUMNS))
        names = list(dict.fromkeys(name for row in rows for name in row["fields"]))
        data = {name: [row[name] for row in rows] for name in self.COLUMNS if name != "fields"}
        for name in names:
            # A field may be called as a column is.
            title = "fields." + name if name in data else name
            data[title] = pandas.Series([row["fields"].get(name) for row in rows], dtype=object)
        return pandas.DataFrame(data)
