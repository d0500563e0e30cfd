// record/dump.cc: a log as text, one line an event, one a slot.
#include <cinttypes>
#include <cstdio>
#include <sstream>

#include "record/record.h"

namespace opguard {
namespace {

const char* kPhases[] = {"forward", "recompute", "backward", "optimizer"};
const char* kEvents[] = {"op", "node", "accumulate", "loss", "optimizer", "collective", "state"};
const char* kSlots[] = {"in", "out", "written"};

std::string shape_text(const Meta& meta) {
  std::string s = meta.dtype + "[";
  for (size_t i = 0; i < meta.shape.size(); ++i)
    s += (i ? "," : "") + std::to_string(meta.shape[i]);
  s += "]";
  return meta.device == "cpu" ? s : s + " " + meta.device;
}

std::string value_text(const Slot& slot) {
  if (slot.flags & kUnreadable) return "unreadable";
  char buffer[40];
  std::snprintf(buffer, sizeof buffer, "%016" PRIx64 ":%016" PRIx64, slot.value.h, slot.value.m);
  return buffer;
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

void dump_slot(std::ostream& out, const ProcessLog& log, const Slot& slot) {
  out << "    " << kSlots[static_cast<int>(slot.kind)] << " " << printable(log.text(slot.name))
      << " " << shape_text(log.metas[slot.meta]) << " " << value_text(slot) << " v" << slot.version;
  if (slot.storage != 0) out << " storage " << slot.storage;
  if (slot.flags & kModelValue) out << " model-value";
  if (slot.flags & kUninitialised) out << " uninitialised";
  if (slot.flags & kParameter) out << " parameter";
  if (slot.flags & kCarried) out << " carried";
  out << "\n";
}

}  // namespace

std::string dump(const ProcessLog& log) {
  std::ostringstream out;
  out << "log rank " << log.rank << " of " << log.world << ", pid " << log.pid << ", "
      << log.events.size() << " events, " << log.slots.size() << " records, " << log.lost
      << " lost, " << (log.closed ? "closed" : "not closed") << "\n";
  if (!log.damage.empty()) out << "damage: " << log.damage << "\n";
  for (const auto& [key, value] : log.settings)
    out << "setting " << printable(key) << " = " << printable(value) << "\n";
  for (const auto& [boundary, at] : log.locations) {
    out << "location " << printable(boundary) << " "
        << printable(at.file.empty() ? at.path : at.file) << ":" << at.line;
    if (!at.function.empty()) out << " in " << printable(at.function);
    out << "\n";
  }
  auto gap = log.gaps.begin();
  auto dump_gaps = [&](size_t event) {
    for (; gap != log.gaps.end() && gap->event <= event; ++gap)
      out << "gap before event " << event << ": " << gap->records
          << (gap->records == 1 ? " record is" : " records are") << " missing\n";
  };
  for (size_t i = 0; i < log.events.size(); ++i) {
    dump_gaps(i);
    const Event& e = log.events[i];
    out << "event " << i << " " << kEvents[static_cast<int>(e.kind)] << " "
        << printable(log.text(e.boundary)) << " " << kPhases[static_cast<int>(e.phase)] << " step "
        << e.step << "." << e.micro_batch << " occurrence " << e.occurrence;
    if (e.thread != 0) out << " thread " << e.thread;
    if (e.begin != i) out << " inside " << e.begin << ".." << i - 1;
    if (e.node != kNone) out << " node " << printable(log.text(e.node));
    if (e.forward != kNone) out << " of event " << e.forward;
    if (e.flags & kRaised) out << " raised";
    if (e.flags & kCollective) out << " collective";
    if (e.group != kNone) out << " group " << printable(log.text(e.group));
    if (e.sequence != 0) out << " number " << e.sequence;
    if (e.flags & kInGraph) out << " in-graph";
    out << "\n";
    if (e.scalars != kNone) out << "    scalars " << printable(log.text(e.scalars)) << "\n";
    for (uint32_t s = 0; s < e.slot_count; ++s) dump_slot(out, log, log.slots[e.first_slot + s]);
    if (e.results != kNone) out << "    results " << printable(log.text(e.results)) << "\n";
  }
  dump_gaps(log.events.size());
  return out.str();
}

}  // namespace opguard
