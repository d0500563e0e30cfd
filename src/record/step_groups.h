// record/step_groups.h: digests of the parts of a step: of its events, sites, modules and phases.
//
//   micro-batch 0, forward     model.linear:9f31     sum 5d02
//   micro-batch 0, forward     model.softmax:77ab    sum 0c4e
//   micro-batch 0, backward    model.softmax:77ab    sum 11d8
//
// Sums modulo 2^32 of what takes part in a step's digest (step_digest.h). So they can be added up:
// of a site's events, of a module's sites, of all micro-batches, of a phase. Two steps that keep
// other depths are compared at the coarser one.
//
// Counterexample: equal sums of one site say no more than their few bits can. Whether the steps are
// equal their own digests tell.
// The cost: 20 bytes an event of the step in memory.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "record/event.h"

namespace opguard {

// How finely groups are told, the finest first. Each is sums of the one before it.
enum class GroupDepth : uint8_t {
  event,            // micro-batch, phase, site, and which of its events there
  site,             // micro-batch, phase and site
  module_of_batch,  // micro-batch, phase and the module that the site is written in
  module,           // phase and module
  phase,
};
inline constexpr uint8_t kGroupDepths = 5;

struct StepGroup {
  uint32_t micro_batch = 0;    // kNone: of all
  uint32_t boundary = kNone;   // string: the site; of a module any of its sites; kNone: of all
  uint32_t of_module = kNone;  // string: one boundary for each module
  Phase phase = Phase::forward;
  uint32_t sum = 0;
  bool operator==(const StepGroup&) const = default;
};

// Of the site "pkg.model.softmax:77ab" "pkg.model"; of what is no site all of it.
std::string_view module_of_site(std::string_view boundary);

// Groups of events, at a depth, in the order in which they come first. By strings: texts are not
// compared.
std::vector<StepGroup> fold_groups(const std::vector<StepGroup>& events, GroupDepth depth);

// Which of a log's boundaries are of one module.
class SiteModules {
 public:
  // The strings of the log, in their order.
  void add_text(std::string_view text);
  // The first string whose module is that of this one.
  uint32_t of(uint32_t string) const {
    return string < modules_.size() ? modules_[string] : string;
  }

 private:
  std::vector<uint32_t> modules_;
  std::unordered_map<std::string, uint32_t> first_of_module_;
};

}  // namespace opguard
