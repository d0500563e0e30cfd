"""The trace of --perfetto, decoded with Perfetto's own schema (the protos of its Python package)."""
import subprocess

import pytest
from report_logs import SOURCE_A, Runs, runs, sides, write_logs  # noqa: F401 (a fixture)

schema = pytest.importorskip("perfetto.protos.perfetto.trace.perfetto_trace_pb2", reason="pip install perfetto")

BEGIN, END = schema.TrackEvent.TYPE_SLICE_BEGIN, schema.TrackEvent.TYPE_SLICE_END


class Slice:
    """One slice: its names resolved as a reader of the trace does."""

    def __init__(self, packet, tables):
        event = packet.track_event
        self.start, self.end, self.track = packet.timestamp, None, event.track_uuid
        self.name = tables["event_names"][event.name_iid]
        self.categories = [tables["event_categories"][i] for i in event.category_iids]
        self.flows, self.flows_end = list(event.flow_ids), list(event.terminating_flow_ids)
        self.source = tables["source_locations"].get(event.source_location_iid)
        self.arguments = {}
        for annotation in event.debug_annotations:
            name = tables["debug_annotation_names"][annotation.name_iid]
            kind = annotation.WhichOneof("value")
            value = getattr(annotation, kind)
            self.arguments[name] = tables["debug_annotation_string_values"][value] if kind == "string_value_iid" else value


def decode(path):
    """(tracks by uuid, slices by track); every slice is closed, properly nested and in the order of time."""
    trace = schema.Trace()
    trace.ParseFromString(path.read_bytes())
    # What the schema does not know would be kept aside.
    from google.protobuf.unknown_fields import UnknownFieldSet
    tables = {name: {} for name in ("event_names", "event_categories", "debug_annotation_names", "debug_annotation_string_values", "source_locations")}
    tracks, slices, open_ = {}, {}, {}
    for number, packet in enumerate(trace.packet):
        assert len(UnknownFieldSet(packet)) == 0 and len(UnknownFieldSet(packet.track_event)) == 0
        assert packet.sequence_flags == (1 if number == 0 else 2)
        for name, table in tables.items():
            for entry in getattr(packet.interned_data, name):
                assert entry.iid not in table and entry.iid > 0
                table[entry.iid] = entry if name == "source_locations" else entry.str.decode() if name.endswith("values") else entry.name
        if packet.HasField("track_descriptor"):
            assert packet.track_descriptor.uuid not in tracks
            tracks[packet.track_descriptor.uuid] = packet.track_descriptor
        if not packet.HasField("track_event"):
            continue
        event = packet.track_event
        assert event.track_uuid in tracks
        stack = open_.setdefault(event.track_uuid, [])
        if event.type == BEGIN:
            found = Slice(packet, tables)
            assert not stack or stack[-1].start <= found.start
            stack.append(found)
            slices.setdefault(event.track_uuid, []).append(found)
        else:
            assert event.type == END
            stack.pop().end = packet.timestamp
    assert all(not stack for stack in open_.values())
    assert all(s.end > s.start for found in slices.values() for s in found)
    return tracks, slices


def named(tracks, slices, process, name):
    parent = next(u for u, t in tracks.items() if t.process.process_name == process)
    return next((slices[u] for u, t in tracks.items() if t.parent_uuid == parent and t.name == name), [])


@pytest.fixture
def trace(runs, tmp_path):  # noqa: F811
    path = tmp_path / "runs.pftrace"
    assert runs.compare("--perfetto", path).returncode == 1
    return decode(path)


def test_a_process_for_each_rank_and_side(tmp_path, opguard):
    both = Runs(tmp_path, opguard).write(**sides(tmp_path, ranks=2))
    path = tmp_path / "ranks.pftrace"
    assert both.compare("--perfetto", path).returncode == 1
    tracks, _ = decode(path)
    processes = [t.process for t in tracks.values() if t.HasField("process")]
    assert [p.process_name for p in processes] == ["rank 0, a", "rank 0, b", "rank 1, a", "rank 1, b"]
    assert len({p.pid for p in processes}) == 4
    children = {t.name for t in tracks.values() if t.parent_uuid}
    assert children == {"steps", "equality", "call stack", "operators", "backward"}


def test_chosen_ranks_and_steps(tmp_path, opguard):
    both = Runs(tmp_path, opguard).write(**sides(tmp_path, ranks=2))
    path = tmp_path / "chosen.pftrace"
    assert both.compare("--perfetto", path, "--trace-rank", "1", "--trace-steps", "1..1").returncode == 1
    tracks, slices = decode(path)
    assert [t.process.process_name for t in tracks.values() if t.HasField("process")] == ["rank 1, a", "rank 1, b"]
    shown = [s for track in ("operators", "backward") for s in named(tracks, slices, "rank 1, a", track)]
    assert {s.arguments["step"] for s in shown} == {1} and min(s.start for s in shown) == 0
    assert both.compare("--perfetto", tmp_path / "whole.pftrace").returncode == 1
    whole = [s for track in ("operators", "backward") for s in named(*decode(tmp_path / "whole.pftrace"), "rank 1, a", track)]
    assert sorted((s.name, s.arguments["index"]) for s in shown) == sorted((s.name, s.arguments["index"]) for s in whole if s.arguments["step"] == 1)
    bad = both.compare("--perfetto", path, "--trace-steps", "4..2")
    assert bad.returncode == 2 and "--trace-steps: the last step is before the first: 4..2" in bad.stderr


def test_slices_are_of_one_width_and_partners_stand_under_each_other(trace):
    tracks, slices = trace
    ours, theirs = [], []
    for track in ("operators", "backward"):
        ours += named(tracks, slices, "rank 0, a", track)
        theirs += named(tracks, slices, "rank 0, b", track)
    assert (len(ours), len(theirs)) == (21, 22)
    assert {s.end - s.start for s in ours + theirs} == {1000}
    # Every pair is linked by a flow of its own, from a to b.
    flows = {s.flows[0]: s for s in ours}
    assert len(flows) == 21 and not any(s.flows_end for s in ours)
    linked = [s for s in theirs if s.flows_end]
    assert len(linked) == 21 and not any(s.flows for s in theirs)
    for partner in linked:
        own = flows[partner.flows_end[0]]
        assert (own.name, own.start, own.categories) == (partner.name, partner.start, partner.categories)
    alone = [s for s in theirs if not s.flows_end]
    assert [(s.name, s.categories) for s in alone] == [(".to", ["only b"])]


def test_categories_and_the_equality_track_say_where_the_runs_part(trace):
    tracks, slices = trace
    operators = named(tracks, slices, "rank 0, b", "operators")
    assert [s.name for s in operators if s.categories == ["first difference"]] == ["@"]
    assert {s.categories[0] for s in operators} == {"equal", "first difference", "later difference", "only b"}
    first = next(s for s in operators if s.categories == ["first difference"])
    equality = named(tracks, slices, "rank 0, b", "equality")
    assert [(s.name, s.start) for s in equality][:3] == [("equal", 0), ("first difference", first.start), ("only b", first.start + 1000)]
    assert equality[-1].end == 22000


def test_arguments_lead_to_the_source_and_the_real_times(trace, tmp_path):
    tracks, slices = trace
    softmax = [s for s in named(tracks, slices, "rank 0, a", "operators") if s.name == "torch.softmax"][1]
    path = tmp_path / "tree_a" / "model.py"
    line = SOURCE_A[: SOURCE_A.index("torch.softmax")].count("\n") + 1
    assert softmax.arguments["source"] == f"{path}:{line}:15"
    assert (softmax.source.file_name, softmax.source.line_number, softmax.source.function_name) == (str(path), line, "attend")
    assert softmax.arguments["boundary"] == "model.softmax:bbbb"
    assert (softmax.arguments["step"], softmax.arguments["phase"], softmax.arguments["index"]) == (1, "forward", 8)
    assert softmax.arguments["duration_ns"] == 5000 and softmax.arguments["start_ns"] > 1e9
    assert softmax.arguments["arguments"] == "dim=-1"
    assert softmax.arguments["out out0"].startswith("float32[4, 8] ")


def test_steps_and_call_stack_are_nested(trace):
    tracks, slices = trace
    steps = named(tracks, slices, "rank 0, a", "steps")
    assert [s.name for s in steps][:4] == ["step 0", "forward", "backward", "optimizer"]
    assert [s.name for s in steps if s.name.startswith("step")] == ["step 0", "step 1", "step 2"]
    stack = named(tracks, slices, "rank 0, a", "call stack")
    assert stack[0].name == "attend (model.py)" and stack[1].name == "müller (model.py)"


def test_hostile_names_are_valid_text(tmp_path, opguard):
    specs = sides(tmp_path)
    for spec in specs.values():
        for event in spec["processes"][0]["events"]:
            event["scalars"] = {"hex": "1b5b33316dff00e280ae"}
    both = Runs(tmp_path, opguard).write(**specs)
    path = tmp_path / "hostile.pftrace"
    assert both.compare("--perfetto", path).returncode == 1
    tracks, slices = decode(path)
    assert named(tracks, slices, "rank 0, a", "operators")[0].arguments["arguments"] == "\\x1b[31m\\xff\\x00\\u202e"


def test_a_longer_run(tmp_path, opguard):
    subprocess.run([write_logs(), "--pairs", "3000", "1", tmp_path / "a", tmp_path / "b"], check=True)
    path = tmp_path / "long.pftrace"
    assert opguard("align", tmp_path / "a", tmp_path / "b", "--perfetto", path).returncode == 1
    _, slices = decode(path)
    assert sum(len(s.flows) for found in slices.values() for s in found) == 3000
