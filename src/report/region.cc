// Gathers the operators of a region by function, so that a reader is sent to stretches of lines.
//
//   region of b    q @ k (model.py:31), scores + mask (33), softmax (34), softmax (34) again
//   one span       model.py:31-34 in Attention.forward, 3 operators
//
// An operator counts once, however often it ran. A span reaches from its first line to its last, so
// lines between them need not belong to the region.
//
// Counterexample: a span for each operator. Of a region of forty operators a reader would see forty
// places, and not where they stand.
//
// The cost: every event looks its function up among the spans; a boundary is looked at once a
// process.
#include "report/region.h"

#include <algorithm>
#include <set>

#include "align/judge/pivot_view.h"
#include "support/text.h"

namespace opguard {

std::vector<RegionSpan> region_spans(const Run& run, const std::vector<EventRef>& region) {
  std::vector<RegionSpan> spans;
  std::set<std::pair<int32_t, uint32_t>> counted;  // a boundary that runs again is one place
  for (const EventRef& ref : region) {
    const uint32_t boundary = run.processes[ref.process].events[ref.event].boundary;
    if (!counted.emplace(ref.process, boundary).second) continue;
    const EventView event = view(run, ref);
    const Location& at = event.location;
    if (at.line == 0) continue;
    auto span = std::find_if(spans.begin(), spans.end(), [&](const RegionSpan& known) {
      return known.path == at.path && known.file == at.file && known.function == at.function;
    });
    if (span == spans.end()) {
      spans.push_back({at.package, at.file, at.path, at.function, at.line, at.line, 0});
      span = spans.end() - 1;
    }
    // end_line is 0 where the runtime alone knows the place.
    span->first = std::min(span->first, at.line);
    span->last = std::max({span->last, at.line, at.end_line});
    ++span->operators;
  }
  return spans;
}

// A structure without a region is a matched operator of another shape: it is its own region. Of
// other kinds without a region there are no spans.
std::array<std::vector<RegionSpan>, 2> region_of(const Run& a, const Run& b, const Pivot& pivot) {
  const bool own = pivot.region[0].empty() && pivot.region[1].empty();
  if (own && pivot.kind != PivotKind::structure) return {};
  auto spans = [&](const Run& run, const std::vector<EventRef>& region, const EventRef& event) {
    if (!own) return region_spans(run, region);
    return event.process < 0 ? std::vector<RegionSpan>() : region_spans(run, {event});
  };
  return {spans(a, pivot.region[0], pivot.a), spans(b, pivot.region[1], pivot.b)};
}

std::string lines_text(uint32_t first, uint32_t last) {
  return std::to_string(first) + (last > first ? "-" + std::to_string(last) : "");
}

std::string region_text(const std::vector<RegionSpan>& spans) {
  constexpr size_t kShown = 4;
  std::string text;
  for (size_t i = 0; i < std::min(spans.size(), kShown); ++i) {
    const RegionSpan& span = spans[i];
    if (i > 0) text += "; ";
    text += (span.file.empty() ? span.path : span.file) + ":" + lines_text(span.first, span.last);
    if (!span.function.empty() && span.function != "<module>") text += " in " + span.function;
    text += ", " + counted(span.operators, "operator");
  }
  if (spans.size() > kShown) text += "; and in " + counted(spans.size() - kShown, "more function");
  return text;
}

}  // namespace opguard
