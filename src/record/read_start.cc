// Of an index of three steps:
//
//   step 0    events before: 0       chunk at 400
//   step 1    events before: 950     chunk at 400
//   step 2    events before: 2100    chunk at 9000
//
//   event 1000     step 2 begins behind it, so step 1 holds it: from byte 400 on
//   until 950      step 1 begins there, in the chunk at 400; up to 9000, where the next one begins
#include "record/read_start.h"

#include <optional>
#include <utility>

#include "record/entry_search.h"

namespace opguard {

namespace {

// The first byte of a chunk behind which no event is that comes before `until`; kToEnd: there is
// none, or it cannot be told.
uint64_t end_of_reading(StepIndex& index, uint64_t until) {
  const auto first = [&](auto holds) -> std::optional<StepEntry> {
    const auto told = [&](uint64_t i) -> std::optional<bool> {
      const auto entry = index.at(i);
      if (!entry) return {};
      return holds(*entry);
    };
    const auto found = first_entry(index.steps(), told, index.near(until));
    return found && *found < index.steps() ? index.at(*found) : std::nullopt;
  };
  // The chunk that holds `until` may hold what comes before as well, so the next one ends it.
  const auto behind = first([&](const StepEntry& entry) { return entry.events_before >= until; });
  if (!behind) return kToEnd;
  const auto next =
      first([&](const StepEntry& entry) { return entry.chunk_at > behind->chunk_at; });
  return next ? next->chunk_at : kToEnd;
}

}  // namespace

ReadStart read_start(const std::string& log_path, uint64_t event, uint64_t until,
                     const Bring* bring) {
  StepIndex index;
  if (!index.open(step_index_path(log_path), bring) || !index.end() || index.end()->lost > 0)
    return {};
  const auto is_behind = [&](uint64_t i) -> std::optional<bool> {
    const auto entry = index.at(i);
    if (!entry) return {};
    return entry->events_before > event;
  };
  const auto behind = first_entry(index.steps(), is_behind, index.near(event));
  if (!behind || *behind == 0) return {};
  const auto entry = index.at(*behind - 1);
  auto stretches = index.stretches();
  if (!entry || !stretches) return {};
  ReadStart start{.at = entry->chunk_at,
                  .before = {},
                  .salt = index.salt(),
                  .chunks = index.end()->chunks,
                  .chunk_chain = index.end()->chunk_chain};
  if (until != kToEnd) start.until = end_of_reading(index, until);
  for (const LogExtent& stretch : *stretches)
    if (stretch.at < start.at) start.before.push_back(stretch);
  return start;
}

}  // namespace opguard
