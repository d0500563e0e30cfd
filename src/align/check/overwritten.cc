// A change of memory becomes a finding if it is proven (values/unseen_changes.h), once for a pair
// of boundaries. What else read the same block before the finding's own reader began is one of its
// readers: a writing shows in every view.
//
//   left by norm, read by up at 12 ms     proven: a finding, norm -> up
//   left by norm, read by gate            last seen intact before 12 ms: one more reader of it
//   the next step, the same two           times 2
//
// The cost: one pass over the log's events for each finding, for what ran meanwhile.
#include "align/check/overwritten.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "align/values/unseen_changes.h"

namespace opguard {
namespace {

// What ran between the last sight of the old bytes and the reader of the new ones; other threads
// first.
void add_window(const ProcessLog& log, int32_t process, Overwrite& found) {
  const uint32_t own = log.events.thread(found.consumer.event);
  std::map<std::tuple<bool, uint32_t, uint32_t>, RanMeanwhile> parts;
  for (uint32_t i = 0; i < log.events.size(); ++i) {
    const Event e = log.events[i];
    if (e.end_ns <= found.from_ns || e.start_ns >= found.to_ns) continue;
    if (i == found.producer.event || i == found.consumer.event || e.kind == EventKind::state)
      continue;
    ++found.events;
    RanMeanwhile& part = parts[{e.thread == own, e.thread, e.boundary}];
    if (part.count++ == 0) part.thread = e.thread, part.first = {process, i};
  }
  for (const auto& [key, part] : parts) found.meanwhile.push_back(part);
  std::stable_sort(found.meanwhile.begin(), found.meanwhile.end(),
                   [&](const RanMeanwhile& x, const RanMeanwhile& y) {
                     return std::tuple(x.thread == own, x.thread, x.first.event) <
                            std::tuple(y.thread == own, y.thread, y.first.event);
                   });
}

Overwrite finding(const ProcessLog& log, int32_t process, const UnseenChange& change) {
  Overwrite found;
  found.producer = {process, change.left.event};
  found.seen = {process, change.seen.event};
  found.consumer = {process, change.read.event};
  found.left = change.left.slot;
  found.read = change.read.slot;
  found.from_ns = change.seen.time_ns;
  found.to_ns = change.read.time_ns;
  add_window(log, process, found);
  return found;
}

void add_reader(Overwrite& finding, const EventRef& reader) {
  if (std::find(finding.readers.begin(), finding.readers.end(), reader) == finding.readers.end() &&
      !(finding.consumer == reader))
    finding.readers.push_back(reader);
}

// The findings of one process behind those there are.
void check_process(const ProcessLog& log, int32_t process, OverwrittenCheck& check) {
  const UnseenChanges found = unseen_changes(log);
  check.reads += found.reads;
  check.compared += found.compared;
  std::map<std::pair<uint32_t, uint32_t>, size_t> places;  // by boundaries, in check.findings
  struct Span {
    uint64_t to_ns;
    size_t finding;
  };
  std::unordered_map<uint32_t, Span> open;  // by storage: the latest overwriting found
  for (const UnseenChange& change : found.changes) {
    const Slot read = log.slots[change.read.slot];
    // One writing shows in every view of the block.
    auto latest = open.find(read.storage);
    if (latest != open.end() && change.seen.time_ns < latest->second.to_ns) {
      add_reader(check.findings[latest->second.finding], {process, change.read.event});
      continue;
    }
    if (!change.proven) continue;
    const std::pair<uint32_t, uint32_t> place(log.events[change.left.event].boundary,
                                              log.events[change.read.event].boundary);
    auto [at, fresh] = places.try_emplace(place, check.findings.size());
    if (fresh)
      check.findings.push_back(finding(log, process, change));
    else
      ++check.findings[at->second].times;
    open[read.storage] = {change.read.time_ns, at->second};
  }
}

}  // namespace

OverwrittenCheck check_overwritten(const Run& run) {
  OverwrittenCheck check;
  for (size_t p = 0; p < run.processes.size(); ++p)
    check_process(run.processes[p], int32_t(p), check);
  return check;
}

Reasons explain(const Overwrite& finding) {
  Reasons why = {{.kind = ReasonKind::memory_overwritten,
                  .events = {finding.producer, finding.consumer},
                  .slots = {finding.left, finding.read}}};
  if (!finding.readers.empty())
    why.push_back({.kind = ReasonKind::more_readers, .numbers = {finding.readers.size()}});
  if (finding.times > 1) why.push_back({.kind = ReasonKind::times, .numbers = {finding.times}});
  return why;
}

}  // namespace opguard
