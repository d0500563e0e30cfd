// Writes the packets in one pass over the rows, with a clock that counts rows.
//
//   row 0   begin "step 0", begin "forward", begin "equal", slice "embed" [0, 1000) ns
//   row 1   the steps stay open; the equality stays open while it is the same; slice "norm"
//   row 2   end "equal", begin "first difference", slice "softmax"
//
// set_open() closes what is not wanted any more, innermost first, and opens what is new. So a track
// of steps over a thousand rows is two packets and not two thousand.
//
// A name is written once, in the first packet that uses it, and is a number from then on.
// Counterexample: a packet that referred to a name of a later one would show no name. So each
// carries the names that it is the first to use.
#include "report/perfetto.h"

#include <algorithm>
#include <map>

#include "align/judge/pivot_view.h"
#include "align/pair/difference.h"
#include "nlohmann/json.hpp"
#include "protozero/pbf_writer.hpp"
#include "report/identity.h"
#include "report/perfetto_fields.h"
#include "report/perfetto_names.h"
#include "report/place_text.h"
#include "report/rows.h"
#include "support/text.h"

namespace opguard {
namespace {

constexpr uint64_t kUnit = 1000;   // ns on the trace's clock for one row
constexpr uint32_t kSequence = 1;  // all packets are one writer's

enum SequenceFlag : uint32_t { kStateCleared = 1, kNeedsState = 2 };
enum EventType : int32_t { kBegin = 1, kEnd = 2 };
constexpr int32_t kExplicitOrder = 3;  // TrackDescriptor.ChildTracksOrdering

struct Spot {
  std::string file, function;
  uint32_t line;
  auto operator<=>(const Spot&) const = default;
};

class Trace {
 public:
  Trace(const Report& report, size_t max_rows, const TraceChoice& choice)
      : report_(report),
        runs_{&report.a, &report.b},
        lanes_(chosen_lanes(report, choice)),
        kept_(kept_rows(report, lanes_, max_rows)),
        trace_(out_) {}

  std::string run() {
    for (size_t i = 0; i < lanes_.size(); ++i) lane(i);
    identify();
    return std::move(out_);
  }

 private:
  enum Child : uint32_t {
    kSteps,
    kEquality,
    kStack,
    kOperators,
    kBackward,
    kCollectives,
    kThreads
  };

  // Where an event stands in the calls around it. Of 64 calls within each other all are shown, of
  // more the outermost 64 and how many there are. The trace stays linear in the log, whose events
  // may each be within the next.
  struct Enclosing {
    uint32_t depth = 0;      // events around it
    uint32_t outer = kNone;  // the innermost of them that is shown
  };
  static constexpr uint32_t kShownDepth = 64;

  // What one side of one lane has open.
  struct Side {
    int side = 0;
    const ProcessLog* log = nullptr;
    uint64_t process = 0;                   // uuid of its track
    std::map<uint32_t, uint64_t> children;  // uuid by Child, or kThreads + thread
    std::vector<std::string> open[3];       // slices by Child: steps, equality, stack
    std::vector<Enclosing> enclosing;       // of each event
  };

  // ---- Packets.

  template <typename Fill>
  void packet(Fill fill) {
    std::string body;
    protozero::pbf_writer writer(body);
    fill(writer);
    protozero::pbf_writer packet(trace_, field::packet);
    packet.add_uint32(field::sequence_id, kSequence);
    packet.add_uint32(field::sequence_flags, first_ ? kStateCleared : kNeedsState);
    first_ = false;
    // PerfettoNames before their use.
    if (names_.pending() || categories_.pending() || arguments_.pending() || texts_.pending() ||
        !places_pending_.empty()) {
      protozero::pbf_writer interned(packet, field::interned_data);
      for (PerfettoNames* table : {&categories_, &names_, &arguments_, &texts_})
        table->write(interned);
      for (const auto& at : places_pending_) {
        protozero::pbf_writer place(interned, field::source_locations);
        place.add_uint64(field::iid, at->second);
        place.add_bytes(field::file_name, at->first.file);
        place.add_bytes(field::function_name, at->first.function);
        place.add_uint32(field::line_number, at->first.line);
      }
      places_pending_.clear();
    }
    out_ += body;  // fields of `packet`, whose length is set when it closes
  }

  // Perfetto lists it under "Info and stats", each name behind "cr-".
  void identify() {
    packet([&](protozero::pbf_writer& packet) {
      protozero::pbf_writer bundle(packet, field::chrome_events);
      auto add = [&](const std::string& name, const nlohmann::ordered_json& value) {
        protozero::pbf_writer entry(bundle, field::metadata);
        entry.add_bytes(field::metadata_name, "opguard-" + name);
        entry.add_bytes(field::metadata_text,
                        value.is_string() ? value.get<std::string>() : value.dump());
      };
      const auto json = identity_json(report_.identity);
      add("version", json["opguard"]["version"]);
      add("commit", json["opguard"]["commit"]);
      for (const char* name : {"schema", "command", "date"}) add(name, json[name]);
      add("a", shown(run_title(report_.a)));
      add("b", shown(run_title(report_.b)));
    });
  }

  void describe_process(Side& side, const Lane& lane, size_t index) {
    side.process = next_uuid_++;
    packet([&](protozero::pbf_writer& packet) {
      protozero::pbf_writer track(packet, field::track_descriptor);
      track.add_uint64(field::uuid, side.process);
      track.add_int32(field::child_ordering, kExplicitOrder);
      protozero::pbf_writer process(track, field::process);
      // Not the real process number: both runs may have had the same.
      const int32_t number = int32_t(2 * index + side.side + 1);
      process.add_int32(field::pid, number);
      process.add_int32(field::legacy_sort_index, number);
      std::string name = "rank " + std::to_string(lane.rank);
      if (lane.ordinal > 0) name += ", process " + std::to_string(lane.ordinal + 1);
      process.add_bytes(field::process_name, name + (side.side == 0 ? ", a" : ", b"));
      process.add_bytes(field::process_labels, shown(run_title(*runs_[side.side])));
    });
  }

  uint64_t child(Side& side, uint32_t which) {
    auto [at, fresh] = side.children.try_emplace(which, next_uuid_);
    if (!fresh) return at->second;
    ++next_uuid_;
    static const char* const kNames[] = {"steps",     "equality", "call stack",
                                         "operators", "backward", "collectives"};
    packet([&](protozero::pbf_writer& packet) {
      protozero::pbf_writer track(packet, field::track_descriptor);
      track.add_uint64(field::uuid, at->second);
      track.add_uint64(field::parent_uuid, side.process);
      track.add_bytes(field::track_name, which < kThreads
                                             ? kNames[which]
                                             : "thread " + std::to_string(which - kThreads));
      track.add_int32(field::sibling_order_rank, int32_t(which));
    });
    return at->second;
  }

  void begin(uint64_t track, uint64_t time, const std::string& name) {
    const uint64_t id = names_.id(name);
    packet([&](protozero::pbf_writer& packet) {
      packet.add_uint64(field::timestamp, time);
      protozero::pbf_writer event(packet, field::track_event);
      event.add_int32(field::type, kBegin);
      event.add_uint64(field::track_uuid, track);
      event.add_uint64(field::name_iid, id);
    });
  }

  void end(uint64_t track, uint64_t time) {
    packet([&](protozero::pbf_writer& packet) {
      packet.add_uint64(field::timestamp, time);
      protozero::pbf_writer event(packet, field::track_event);
      event.add_int32(field::type, kEnd);
      event.add_uint64(field::track_uuid, track);
    });
  }

  // Ends what is not open any more, innermost first, and begins what is new.
  void set_open(Side& side, Child which, uint64_t time, const std::vector<std::string>& wanted) {
    std::vector<std::string>& open = side.open[which];
    if (open == wanted) return;
    const uint64_t track = child(side, which);
    const auto kept = std::mismatch(open.begin(), open.end(), wanted.begin(), wanted.end());
    const size_t same = kept.first - open.begin();
    for (size_t i = open.size(); i > same; --i) end(track, time);
    for (size_t i = same; i < wanted.size(); ++i) begin(track, time, visible(wanted[i]));
    open = wanted;
  }

  // Entries of the stack carry the event they stand for, behind a NUL.
  static std::string visible(const std::string& entry) { return entry.substr(0, entry.find('\0')); }

  // ---- Events.

  static std::vector<Enclosing> enclosing_events(const ProcessLog& log) {
    std::vector<Enclosing> result(log.events.size());
    std::map<uint32_t, std::vector<uint32_t>>
        open;  // by thread, events that began and have not ended
    // From the back: an event is met before those inside it.
    for (uint32_t i = uint32_t(log.events.size()); i-- > 0;) {
      std::vector<uint32_t>& stack = open[log.events[i].thread];
      while (!stack.empty() && log.events[stack.back()].begin > i) stack.pop_back();
      result[i].depth = uint32_t(stack.size());
      if (!stack.empty()) result[i].outer = stack[std::min<size_t>(stack.size(), kShownDepth) - 1];
      if (log.events[i].begin < i) stack.push_back(i);
    }
    return result;
  }

  std::vector<std::string> call_stack(const Side& side, uint32_t index) const {
    std::vector<std::string> stack;
    auto scope = [&](const EventView& event) {
      const Location& at = event.location;
      if (at.function.empty() || at.function == "<module>") return;
      const std::string name = shown(at.function + " (" + at.file + ")");
      if (stack.empty() || visible(stack.back()) != name) stack.push_back(name);
    };
    const Enclosing& around = side.enclosing[index];
    std::vector<uint32_t> shown_events;
    for (uint32_t at = around.outer; at != kNone; at = side.enclosing[at].outer)
      shown_events.push_back(at);
    std::reverse(shown_events.begin(), shown_events.end());
    for (const uint32_t outer : shown_events) {
      const EventView event = view(*side.log, outer);
      scope(event);
      stack.push_back(shown(event.operator_name) + '\0' + std::to_string(outer));
    }
    if (around.depth > kShownDepth)
      stack.push_back("and " + std::to_string(around.depth - kShownDepth) + " calls within");
    scope(view(*side.log, index));
    return stack;
  }

  static const char* state_name(const LaneRow& row, bool pivot) {
    if (pivot) return "first difference";
    if (row.b == kNone) return "only a";
    if (row.a == kNone) return "only b";
    if (row.equality == Equality::hidden) return "hidden";
    return row.differs() ? "later difference" : "equal";
  }

  // "left out: 12 equal, 1 differing, 3 only a"
  static std::string left_out(const LeftOut& gap) {
    std::string text;
    auto part = [&](uint64_t count, const char* what) {
      if (count > 0) text += (text.empty() ? "left out: " : ", ") + std::to_string(count) + what;
    };
    part(gap.equal, " equal");
    part(gap.differing, " differing");
    part(gap.only_a, " only a");
    part(gap.only_b, " only b");
    return text;
  }

  static Child track_of(const Event& event) {
    switch (event.kind) {
      case EventKind::node:
      case EventKind::accumulate:
        return kBackward;
      case EventKind::collective:
        return kCollectives;
      default:
        return kOperators;
    }
  }

  uint64_t place(const Provenance& provenance, const Location& at) {
    std::string file = at.path.empty() ? at.file : provenance.shown_path(at.path);
    if (file.empty()) return 0;
    file += provenance.label(at.path);
    auto [found, fresh] =
        places_.try_emplace({shown(file), shown(at.function), at.line}, places_.size() + 1);
    if (fresh) places_pending_.push_back(found);
    return found->second;
  }

  struct Argument {
    uint64_t name;
    bool is_text;
    uint64_t value;
  };

  std::vector<Argument> arguments(const Side& side, const EventView& event) {
    const ProcessLog& log = *side.log;
    const Event& e = *event.event;
    std::vector<Argument> list;
    auto text = [&](const std::string& name, const std::string& value) {
      if (!value.empty()) list.push_back({arguments_.id(name), true, texts_.id(value)});
    };
    auto number = [&](const char* name, uint64_t value) {
      list.push_back({arguments_.id(name), false, value});
    };
    const Location& at = event.location;
    if (!at.file.empty()) text("source", shown(place_text(*log.provenance, at)));
    text("expression", shown(at.text));
    text("function", shown(at.function));
    text("boundary", shown(event.boundary));
    text("event", kind_name(e.kind));
    text("node", shown(log.text(e.node)));
    text("phase", phase_name(e.phase));
    number("step", e.step);
    number("micro_batch", e.micro_batch);
    number("index", event.index);
    number("thread", e.thread);
    number("start_ns", e.start_ns);
    number("duration_ns", e.end_ns - e.start_ns);
    text("arguments", shown(log.text(e.scalars)));
    text("results", shown(log.text(e.results)));
    if (e.sequence > 0) {
      text("group", shown(log.text(e.group)));
      number("collective", e.sequence);
    }
    static const char* const kKinds[] = {"in ", "out ", "written "};
    for (const Slot& slot : log.slots_of(e)) {
      text(kKinds[int(slot.kind)] + shown(log.text(slot.name)),
           shown(shape_text(log, slot)) + " " + fingerprint_text(slot));
    }
    return list;
  }

  void slice(Side& side, uint32_t index, uint64_t time, const char* state, uint64_t flow) {
    const EventView event = view(*side.log, index);
    const Event& e = *event.event;
    const uint64_t track = child(side, e.thread == 0 ? track_of(e) : kThreads + e.thread);
    std::string name = shown(event.operator_name);
    if (e.kind == EventKind::node) name += " " + shown(side.log->text(e.node));
    const uint64_t name_id = names_.id(name), category = categories_.id(state),
                   source = place(*side.log->provenance, event.location);
    const std::vector<Argument> list = arguments(side, event);
    packet([&](protozero::pbf_writer& packet) {
      packet.add_uint64(field::timestamp, time);
      protozero::pbf_writer out(packet, field::track_event);
      out.add_int32(field::type, kBegin);
      out.add_uint64(field::track_uuid, track);
      out.add_uint64(field::name_iid, name_id);
      out.add_uint64(field::category_iids, category);
      if (source > 0) out.add_uint64(field::source_location_iid, source);
      if (flow > 0)
        out.add_fixed64(side.side == 0 ? field::flow_ids : field::terminating_flow_ids, flow);
      for (const Argument& argument : list) {
        protozero::pbf_writer annotation(out, field::debug_annotations);
        annotation.add_uint64(field::annotation_name_iid, argument.name);
        annotation.add_uint64(argument.is_text ? field::string_value_iid : field::uint_value,
                              argument.value);
      }
    });
    end(track, time + kUnit);
  }

  void lane(size_t index) {
    const Lane& lane = lanes_[index];
    Side sides[2];
    for (int side : {0, 1}) {
      const int32_t process = side == 0 ? lane.a : lane.b;
      if (process < 0) continue;
      sides[side].side = side;
      sides[side].log = &runs_[side]->processes[process];
      sides[side].enclosing = enclosing_events(*sides[side].log);
      describe_process(sides[side], lane, index);
    }
    const auto& candidates = report_.verdict.candidates;
    auto is_pivot = [&](const LaneRow& row) {
      if (candidates.empty()) return false;
      const Pivot& pivot = candidates.front();
      return (row.a != kNone && pivot.a == EventRef{lane.a, row.a}) ||
             (row.b != kNone && pivot.b == EventRef{lane.b, row.b});
    };
    uint64_t time = 0;
    LeftOut gap;
    // As wide as one row, with nothing else open.
    auto close_gap = [&] {
      if (gap.rows() == 0) return;
      for (Side& side : sides) {
        if (!side.log) continue;
        for (const Child which : {kSteps, kStack}) set_open(side, which, time, {});
        set_open(side, kEquality, time, {left_out(gap)});
      }
      gap = {};
      time += kUnit;
    };
    for (size_t i = 0; i < lane.rows.size(); ++i) {
      const LaneRow& row = lane.rows[i];
      if (!kept_[index][i]) {
        gap.add(row);
        continue;
      }
      close_gap();
      const char* state = state_name(row, is_pivot(row));
      const uint64_t flow = row.paired() ? ++flows_ : 0;
      for (Side& side : sides) {
        const uint32_t at = side.side == 0 ? row.a : row.b;
        if (!side.log || at == kNone) {
          if (side.log) set_open(side, kEquality, time, {});
          continue;
        }
        const Event& event = side.log->events[at];
        set_open(side, kSteps, time,
                 {"step " + std::to_string(event.step), phase_name(event.phase)});
        set_open(side, kEquality, time, {state});
        if (event.thread == 0) set_open(side, kStack, time, call_stack(side, at));
        slice(side, at, time, state, flow);
      }
      time += kUnit;
    }
    close_gap();
    for (Side& side : sides)
      if (side.log)
        for (const Child which : {kSteps, kEquality, kStack}) set_open(side, which, time, {});
  }

  const Report& report_;
  const Run* runs_[2];
  const std::vector<Lane> lanes_;
  const std::vector<std::vector<bool>> kept_;  // by lane and row
  std::string out_;
  protozero::pbf_writer trace_;
  bool first_ = true;
  uint64_t next_uuid_ = 1, flows_ = 0;
  PerfettoNames categories_{field::event_categories}, names_{field::event_names},
      arguments_{field::annotation_names}, texts_{field::string_values};
  std::map<Spot, uint64_t> places_;
  std::vector<std::map<Spot, uint64_t>::const_iterator> places_pending_;
};

}  // namespace

std::string format_perfetto(const Report& report, size_t max_rows, const TraceChoice& choice) {
  return Trace(report, max_rows, choice).run();
}

}  // namespace opguard
