#include "report/unreached_text.h"

#include <algorithm>

#include "align/judge/pivot_view.h"
#include "align/pair/difference.h"
#include "support/text.h"

namespace opguard {
namespace {

// The first argument that differs on either side.
std::string argument_text(const EventView& a, const EventView& b) {
  const auto [items_a, items_b] =
      scalar_differences(a.log->text(a.event->scalars), b.log->text(b.event->scalars));
  std::string text;
  for (const auto& [side, items] : {std::pair("a", &items_a), std::pair("b", &items_b)}) {
    auto item = std::find_if(items->begin(), items->end(),
                             [](const ScalarItem& scalar) { return scalar.differs; });
    if (item != items->end()) text += ", " + shown(item->text) + " in " + side;
  }
  return text;
}

}  // namespace

std::vector<std::string> unreached_lines(const Report& report, size_t most) {
  std::vector<std::string> lines;
  for (const Pair& pair : report.verdict.unreached) {
    if (lines.size() == most) break;
    const ProcessPair& process = report.alignment.processes[pair.process];
    const EventView a = view(report.a.processes[process.a], pair.a),
                    b = view(report.b.processes[process.b], pair.b);
    std::string text = shown(place(b)) + "  " + shown(b.operator_name) + ", " +
                       phase_name(b.event->phase) + ", step " + std::to_string(b.event->step) +
                       ", rank " + std::to_string(b.log->rank) + ": by " +
                       equality_name(pair.equality);
    if (pair.equality == Equality::scalars) text += argument_text(a, b);
    // The first slot stands for the others: a line is a hint where to look, not a table.
    const SlotDifferences found(*a.log, *a.event, *b.log, *b.event);
    if (!found.slots.empty()) text += ", slot " + shown(b.log->text(found.slots[0].either().name));
    lines.push_back(std::move(text));
  }
  return lines;
}

}  // namespace opguard
