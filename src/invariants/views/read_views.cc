// Logs of several ranks, read in turns: all observations of the least step that a rank still has,
// then the next step's.
//
//   rank 0 at step 3, rank 1 at step 2     rank 1 is read to the end of step 2, then both of step 3
//
// Counterexample: one log after the other. RankViews would hold all steps of the first rank until
// the second one comes.
//
// The cost: one observation of each rank in memory, and what the views hold.
#include "invariants/views/read_views.h"

#include <memory>
#include <optional>
#include <vector>

#include "invariants/views/function_arguments.h"
#include "invariants/views/run_views.h"

namespace opguard {

namespace {

struct Reading {
  explicit Reading(const ProcessLog& of) : log(of), cursor(of.observations) {
    more = cursor.next(row);
  }
  const ProcessLog& log;
  ObservationCursor cursor;
  Observation row;
  // `row` is one that was not handed on yet.
  bool more = false;
  size_t process = 0;
};

}  // namespace

uint64_t observations_of(const Run& run) {
  uint64_t count = 0;
  for (const ProcessLog& log : run.processes) count += log.observations.size();
  return count;
}

void read_views(const Run& run, CellTexts& texts, RowSink& sink) {
  RunViews views(texts, sink);
  std::vector<std::unique_ptr<Reading>> readings;
  for (const ProcessLog& log : run.processes) {
    if (log.observations.empty()) continue;
    readings.push_back(std::make_unique<Reading>(log));
    readings.back()->process = views.add_process(log.strings, log.rank);
  }
  for (bool any = true; any;) {
    any = false;
    std::optional<uint32_t> least;
    for (const auto& reading : readings)
      if (reading->more && (!least || reading->row.step < *least)) least = reading->row.step;
    for (const auto& reading : readings) {
      const auto& schemas = reading->log.observations.schemas();
      while (reading->more && reading->row.step <= *least) {
        views.add(reading->process, reading->row, schemas);
        reading->more = reading->cursor.next(reading->row);
      }
      if (!reading->more) views.finish(reading->process);
      any = any || reading->more;
    }
  }
  views.finish();
  // These come from events, at the end: their step does not fit into the turns.
  for (const ProcessLog& log : run.processes) argument_rows(log, texts, sink);
}

}  // namespace opguard
