// A process that has ended gives its open rows once, whoever tells of it first: its log's end, or
// the run's.
#include "invariants/views/run_views.h"

namespace opguard {

size_t RunViews::add_process(const std::vector<std::string>& strings, int32_t rank) {
  processes_.push_back(std::make_unique<ProcessViews>(texts_, sink_, strings, ranks_, rank));
  finished_.push_back(false);
  return processes_.size() - 1;
}

void RunViews::finish(size_t process) {
  if (finished_[process]) return;
  finished_[process] = true;
  processes_[process]->finish();
}

void RunViews::finish() {
  for (size_t i = 0; i < processes_.size(); ++i) finish(i);
  ranks_.finish();
}

}  // namespace opguard
