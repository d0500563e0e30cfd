// What a text of a log may hold, and a terminal must not get, is written as its number: \x1b. Long
// shapes and lists are cut, and say how much is missing.
//
// The text goes out in pieces of 64 KiB, as it is made: nobody keeps the dump of a log of
// gigabytes. Who takes it may stop it (`head`).
#include "record/dump.h"

#include <algorithm>
#include <array>
#include <cinttypes>
#include <cstdio>

#include "record/call_stack.h"
#include "record/log_words.h"
#include "record/selection_text.h"

namespace opguard {
namespace {

constexpr size_t kPieceBytes = 1 << 16;

std::string value_text(const Slot& slot) {
  return slot.flags & kUnreadable ? "unreadable" : fingerprint_text(slot.value);
}

// Control characters of names and reprs must not reach a terminal.
std::string printable(const std::string& text) {
  std::string s;
  for (unsigned char c : text) {
    if (c >= 0x20 && c != 0x7f) {
      s.push_back(static_cast<char>(c));
    } else {
      char buffer[8];
      std::snprintf(buffer, sizeof buffer, "\\x%02x", c);
      s += buffer;
    }
  }
  return s;
}

// `text` and a space, or more spaces up to `width` columns and a space.
std::string cell(std::string text, size_t width) {
  text.resize(std::max(text.size(), width) + 1, ' ');
  return text;
}

std::string number_cell(uint64_t number, size_t width) {
  std::string text = std::to_string(number);
  return std::string(width > text.size() ? width - text.size() : 0, ' ') + text + " ";
}

// Under an event's kind.
const std::string kIndent(9, ' ');

// What mode `sketch` adds to a record: the estimate of its norm, and what is not finite.
// And what a library declares of it.
std::string sketch_text(const ProcessLog& log, const SlotSketches& slot) {
  if (slot.sets.empty() || slot.sets.front().sketches.empty()) return "";
  const Sketch& own = slot.sets.front().sketches.front();
  char text[32];
  std::snprintf(text, sizeof text, " norm %.4g", norm(own.sums));
  std::string line = text;
  if (slot.sets.size() > 1)
    line += " and pieces in " + std::to_string(slot.sets.size() - 1) + " ways";
  for (auto [count, name] :
       {std::pair(own.positive_infinite, "inf"), std::pair(own.negative_infinite, "-inf"),
        std::pair(own.not_a_number, "nan")})
    if (count > 0) line += " " + std::to_string(count) + " " + name;
  if (slot.declared != kNone) line += ", declared " + printable(log.text(slot.declared));
  return line;
}

// `sketched`: what sketch_text says of it.
std::string slot_line(const ProcessLog& log, const Slot& slot, const std::string& sketched) {
  std::string line = kIndent + cell(kSlotKindNames[static_cast<size_t>(slot.kind)], 7) +
                     cell(printable(log.text(slot.name)), 16) +
                     cell(shape_text(log.metas[slot.meta]), 22) + cell(value_text(slot), 33) + "v" +
                     std::to_string(slot.version);
  if (slot.storage != 0) line += " storage " + std::to_string(slot.storage);
  for (auto [flag, name] :
       {std::pair(kModelValue, "model-value"), std::pair(kUninitialised, "uninitialised"),
        std::pair(kParameter, "parameter"), std::pair(kMask, "mask"),
        std::pair(kCarried, "carried"), std::pair(kPermuted, "permuted"),
        std::pair(kWantsGradient, "wants-gradient")})
    if (slot.flags & flag) line += std::string(" ") + name;
  return line + sketched + "\n";
}

// Number, kind, phase, step and micro-batch, boundary and occurrence; then what it has of all else.
std::string event_line(const ProcessLog& log, uint64_t index, const Event& e) {
  std::string line =
      number_cell(index, 8) + cell(kEventKindNames[static_cast<size_t>(e.kind)], 10) +
      cell(kPhaseNames[static_cast<size_t>(e.phase)], 9) +
      cell("step " + std::to_string(e.step) + "." + std::to_string(e.micro_batch), 10) +
      printable(log.text(e.boundary)) + " #" + std::to_string(e.occurrence);
  if (e.thread != 0) line += " thread " + std::to_string(e.thread);
  if (e.begin != index)
    line += " inside " + std::to_string(e.begin) + ".." + std::to_string(index - 1);
  if (e.node != kNone) line += " node " + printable(log.text(e.node));
  if (e.forward != kNone) line += " of event " + std::to_string(e.forward);
  if (e.flags & kRaised) line += " raised";
  if (e.flags & kCollective) line += " collective";
  if (e.group != kNone) line += " group " + printable(log.text(e.group));
  if (e.sequence != 0) line += " number " + std::to_string(e.sequence);
  if (e.flags & kInGraph) line += " in-graph";
  if (e.flags & kOnDevice)
    line += " stream " + std::to_string(e.stream) + " for " +
            std::to_string(e.device_end_ns - e.device_start_ns) + " ns";
  return line + "\n";
}

// Steps over so many values and what is below them.
void pass_over(const ObservedValue*& at, uint64_t values) {
  for (; values > 0; --values, ++at)
    if (at->kind == ObservedKind::list) values += at->text;
}

// The value at `at`, which then is behind all that is below it.
std::string observed_text(const ProcessLog& log, const ObservedValue*& at, int depth = 0) {
  constexpr uint32_t kShown = 16;
  constexpr int kDeepest = 8;
  const ObservedValue& value = *at++;
  char text[32];
  switch (value.kind) {
    case ObservedKind::none:
      return "none";
    case ObservedKind::no:
      return "no";
    case ObservedKind::yes:
      return "yes";
    case ObservedKind::integer:
      return std::to_string(value.integer);
    case ObservedKind::real:
      std::snprintf(text, sizeof text, "%.9g", value.real);
      return text;
    case ObservedKind::text:
      return printable(log.text(value.text));
    case ObservedKind::bits:
      std::snprintf(text, sizeof text, "%016" PRIx64, value.bits);
      return text;
    case ObservedKind::list:
      break;
  }
  if (depth == kDeepest) {
    pass_over(at, value.text);
    return "[...]";
  }
  std::string line = "[";
  for (uint32_t i = 0; i < value.text; ++i) {
    if (i == kShown) {
      pass_over(at, value.text - i);
      line += ", and " + std::to_string(value.text - i) + " more";
      break;
    }
    line += (i == 0 ? "" : ", ") + observed_text(log, at, depth + 1);
  }
  return line + "]";
}

// Its kind, its step, and each field that is not none.
std::string observation_line(const ProcessLog& log, const Observation& row) {
  const ObservationSchema& schema = log.observations.schemas()[row.schema];
  std::string line = kIndent + cell(printable(log.text(schema.kind)), 19) +
                     cell("step " + std::to_string(row.step), 9);
  for (size_t i = 0; i < schema.fields.size(); ++i) {
    const ObservedValue* at = row.field(i).data();
    if (at->kind == ObservedKind::none) continue;
    line += " " + printable(log.text(schema.fields[i])) + "=" + observed_text(log, at);
  }
  return line + "\n";
}

std::string head(const ProcessLog& log) {
  std::string text =
      "log rank " + std::to_string(log.rank) + " of " + std::to_string(log.world) + ", pid " +
      std::to_string(log.pid) + ", " + std::to_string(log.events.size()) + " events, " +
      std::to_string(log.slots.size()) + " records, " +
      (log.observations.empty() ? ""
                                : std::to_string(log.observations.size()) + " observations, ") +
      std::to_string(log.lost) + " lost, " + (log.closed ? "closed" : "not closed") +
      (log.bound ? "" : ", its chunks not bound to each other") + "\n";
  return log.damage.empty() ? text : text + "damage: " + log.damage + "\n";
}

std::string context(const ProcessLog& log) {
  std::string text;
  for (const auto& [key, value] : log.settings)
    text += "setting " + printable(key) + " = " + printable(value) + "\n";
  for (const auto& [boundary, at] : log.locations) {
    text += "location " + printable(boundary) + " " + printable(place_of(at));
    if (!at.function.empty()) text += " in " + printable(at.function);
    text += "\n";
  }
  return text;
}

// What an event alone tells; a whole event is shown.
constexpr std::array<std::string_view, 5> kKeys = {"kind", "phase", "node", "rank", "step"};

}  // namespace

std::string event_selection_fault(const std::string& text) {
  SelectionText read;
  if (const auto fault = read_selection(text, kKeys, read)) return fault->sentence(text);
  return read.slot.empty() ? "" : "'" + text + "': events are shown whole, without a slot";
}

EventSelector::EventSelector(const EventSelection& selection, const ProcessLog& log)
    : selection_(selection) {
  if (!selection.ranks.empty())
    rank_ = std::find(selection.ranks.begin(), selection.ranks.end(), log.rank) !=
            selection.ranks.end();
  for (const ObservationSchema& schema : log.observations.schemas())
    kinds_.push_back(
        glob(selection.observed.empty() ? "*" : selection.observed, log.text(schema.kind)));
  auto matching = [&](std::string_view pattern) {
    std::vector<bool> matches;
    for (const std::string& string : log.strings) matches.push_back(glob(pattern, string));
    return matches;
  };
  for (const std::string& text : selection.boundaries) {
    SelectionText read;
    // One with a fault means nothing; who asked was told (event_selection_fault).
    if (read_selection(text, kKeys, read)) continue;
    std::optional<int32_t> rank;
    if (read_number(read.value_of("rank"), rank) && *rank != log.rank) continue;
    Meant& meant = meant_.emplace_back();
    meant.boundary = matching(read.boundary);
    meant.occurrence = read.occurrence;
    read_number(read.value_of("step"), meant.step);
    meant.kind = read.value_of("kind");
    meant.phase = read.value_of("phase");
    if (const std::string_view node = read.value_of("node"); !node.empty())
      meant.node = matching(node);
  }
}

bool EventSelector::means(const Meant& meant, const Event& e) const {
  return meant.boundary[e.boundary] && (!meant.occurrence || *meant.occurrence == e.occurrence) &&
         (!meant.step || *meant.step == e.step) &&
         (meant.node.empty() || (e.node != kNone && meant.node[e.node])) &&
         (meant.kind.empty() || meant.kind == kEventKindNames[static_cast<size_t>(e.kind)]) &&
         (meant.phase.empty() || meant.phase == kPhaseNames[static_cast<size_t>(e.phase)]);
}

bool EventSelector::operator()(const Observation& row) const {
  const EventSelection& s = selection_;
  return rank_ && s.boundaries.empty() && s.phases.empty() && kinds_[row.schema] &&
         (!s.steps || (row.step >= s.steps->first && row.step <= s.steps->second));
}

bool EventSelector::operator()(const Event& event) const {
  const EventSelection& s = selection_;
  return rank_ && s.observed.empty() &&
         (s.boundaries.empty() ||
          std::ranges::any_of(meant_, [&](const Meant& meant) { return means(meant, event); })) &&
         (s.phases.empty() ||
          std::find(s.phases.begin(), s.phases.end(), event.phase) != s.phases.end()) &&
         (!s.steps || (event.step >= s.steps->first && event.step <= s.steps->second));
}

void dump(const ProcessLog& log, const EventSelection& selection, uint64_t& limit,
          const TextSink& out) {
  const EventSelector selected(selection, log);
  if (!selected.rank()) return;
  std::string piece = head(log);
  // Who wants a few events does not want the hundred lines that come before them.
  if (selection.all() && limit == std::numeric_limits<uint64_t>::max()) piece += context(log);
  // A gap is shown whatever is selected: nobody knows what was in it.
  auto gap = log.gaps.begin();
  auto put_gaps = [&](uint64_t event) {
    for (; gap != log.gaps.end() && gap->event <= event; ++gap)
      piece += "gap before event " + std::to_string(gap->event) + ": " +
               (gap->records == 0 ? "" : std::to_string(gap->records) + " ") +
               (gap->records == 1 ? "record is" : "records are") + " missing\n";
  };
  ObservationCursor rows(log.observations);
  Observation row;
  bool more = rows.next(row);
  // Those that were made before this event ended. False: nobody wants more.
  auto put_rows = [&](uint64_t event) {
    for (; more && row.event <= event && limit > 0; more = rows.next(row)) {
      if (!selected(row)) continue;
      --limit;
      piece += observation_line(log, row);
      if (piece.size() < kPieceBytes) continue;
      if (!out(piece)) return false;
      piece.clear();
    }
    return true;
  };
  for (uint64_t i = 0; i < log.events.size() && limit > 0; ++i) {
    put_gaps(i);
    if (!put_rows(i)) return;
    if (limit == 0) break;
    const Event& e = log.events[i];
    if (!selected(e)) continue;
    --limit;
    piece += event_line(log, i, e);
    if (e.scalars != kNone)
      piece += kIndent + cell("scalars", 7) + printable(log.text(e.scalars)) + "\n";
    const EventSketches sketches = log.sketches.of_event(i);
    if (sketches.module != kNone)
      piece += kIndent + cell("module", 7) + printable(log.text(sketches.module)) + "\n";
    if (sketches.calls != kNone)
      for (const Caller& caller : callers_of(log.text(sketches.calls)))
        piece +=
            kIndent + cell("from", 7) +
            printable(caller.path + ":" + std::to_string(caller.line) + " in " + caller.function) +
            "\n";
    auto sketched = sketches.slots.begin();
    const EventSlots slots = log.slots_of(e);
    for (const Slot& slot : slots) {
      const bool has =
          sketched != sketches.slots.end() && sketched->slot == slots.index_of(slot) - e.first_slot;
      piece += slot_line(log, slot, has ? sketch_text(log, *sketched++) : "");
      if (piece.size() < kPieceBytes) continue;
      if (!out(piece)) return;
      piece.clear();
    }
    if (e.results != kNone)
      piece += kIndent + cell("results", 7) + printable(log.text(e.results)) + "\n";
    if (piece.size() < kPieceBytes) continue;
    if (!out(piece)) return;
    piece.clear();
  }
  if (limit > 0) put_gaps(log.events.size());
  if (!put_rows(log.events.size())) return;
  out(piece);
}

std::string dump(const ProcessLog& log) {
  std::string text;
  uint64_t limit = std::numeric_limits<uint64_t>::max();
  dump(log, {}, limit, [&](std::string_view piece) {
    text += piece;
    return true;
  });
  return text;
}

}  // namespace opguard
