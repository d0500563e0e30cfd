// Both chains say all of the steps up to here, so one comparison a step is enough.
//
//   agreed() 36, both have step 36 with chain 9f31    agreed() 37
//   the chains differ                                 parted at this step, over
//   the index has no further step                     over, not parted
#include "record/steps_against.h"

#include <algorithm>
#include <optional>

namespace opguard {

bool StepsAgainst::open(const std::string& path, std::string& error) {
  if (!index_.open(path)) {
    error = index_.why();
    return false;
  }
  if (index_.steps() > 0) return true;
  error = path + ": has no step";
  return false;
}

void StepsAgainst::add(const std::vector<DigestedStep>& steps) {
  for (const DigestedStep& step : steps) {
    if (over_) return;
    chain_ = chain_steps(chain_, step);
    const std::optional<StepEntry> entry = index_.at(agreed());
    over_ = !entry || entry->chain != chain_;
    if (!entry) return;
    if (over_)
      parted_.store(std::min(step.step, entry->step), std::memory_order_release);
    else
      agreed_.fetch_add(1, std::memory_order_acq_rel);
  }
}

}  // namespace opguard
