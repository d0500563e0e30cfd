// confirm/confirm.h: what a re-run of b with values of a put in place says of a candidate:
// docs/confirm.md.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "align/model_values.h"
#include "align/verdict.h"
#include "confirm/experiment.h"

namespace opguard {

struct Proof {
  std::optional<bool> causal;  // none: not proven either way
  std::string why;             // one sentence
  bool again = false;          // the same with the one execution alone may tell more
};

// What was found at the model values of the first comparison, and the two runs.
struct Comparands {
  const Run& a;
  const Run& b;
  const Timeline& timeline;           // of both
  const ModelDifference& difference;  // their first differing model value
};

// again: run b once more, with the experiment's values put in.
Proof judge_rerun(const Comparands& first, const Pivot& candidate, const Experiment& experiment,
                  const Run& again);

// "" if the re-run gave at this event what the run gave; else one sentence.
std::string repeats(const Run& run, const EventRef& event, const Run& again);

}  // namespace opguard
