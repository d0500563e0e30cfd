// report/proof_text.h: what a re-run with values put in place says, in words: docs/proof.md.
#pragma once

#include <string>

#include "confirm/confirm.h"

namespace opguard {

// One sentence. a, b: the two runs, experiment: what was put into b.
std::string outcome_text(const Run& a, const Run& b, const Experiment& experiment,
                         const Outcomes& outcomes);
// The same of text of a put in place of b's. places: "model.py:12, model.py:30".
std::string exchange_outcome_text(const Run& b, const std::string& places,
                                  const Outcomes& outcomes);
std::string obstacle_text(const Run& b, const Obstacle& obstacle);

// "its re-run gives other values at model.py:12", of an event of the run that was made again; ""
// where it gave the same.
std::string repeat_text(const Run& run, const EventRef& event, Repeat repeat);

}  // namespace opguard
