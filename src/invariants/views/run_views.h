// invariants/views/run_views.h: the observations of a run's processes -> rows of all views.
//
//   RunViews views(texts, sink);
//   size_t process = views.add_process(log.strings, log.rank);
//   views.add(process, observation, schemas);     in the log's order
//   views.finish();
//
// Processes may be fed in turns, as they come; rows that compare ranks come when the slowest rank
// has ended the step. So whoever reads whole logs feeds them step by step (read_views()).
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "invariants/views/process_views.h"
#include "invariants/views/rank_views.h"
#include "record/observation.h"

namespace opguard {

class RunViews {
 public:
  RunViews(CellTexts& texts, RowSink& sink) : texts_(texts), sink_(sink), ranks_(texts, sink) {}

  // `strings` may grow; it outlives this.
  size_t add_process(const std::vector<std::string>& strings, int32_t rank);
  void add(size_t process, const Observation& observation,
           std::span<const ObservationSchema> schemas) {
    processes_[process]->add(observation, schemas);
  }
  void finish(size_t process);  // it has ended
  void finish();                // all have

 private:
  CellTexts& texts_;
  RowSink& sink_;
  RankViews ranks_;
  std::vector<std::unique_ptr<ProcessViews>> processes_;
  std::vector<bool> finished_;
};

}  // namespace opguard
