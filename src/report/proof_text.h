// report/proof_text.h: what a re-run with values put in place says, in words: docs/proof.md.
#pragma once

#include <string>

#include "confirm/confirm.h"
#include "report/report.h"

namespace opguard {

// One sentence. a, b: the two runs, experiment: what was put into b.
std::string outcome_text(const Run& a, const Run& b, const Experiment& experiment,
                         const Outcomes& outcomes);
// The same of text of a put in place of b's. places: "model.py:12, model.py:30".
std::string exchange_outcome_text(const Run& b, const std::string& places,
                                  const Outcomes& outcomes);
// side: the run that was made again.
std::string obstacle_text(const Run& run, const Obstacle& obstacle, int side = 1);

// Of what differs and is harmless: everything was healed by another cause alone, an event of b's;
// or run a stayed as it is with run b's results here.
std::string healed_alone_text(const Run& b, const EventRef& cause);
std::string left_out_text();

// What one of several causes is to the difference: one sentence, "" of the only one.
std::string need_text(const ProofReport& proof, const Cause& cause);

// "of 41 executions that differ, each given what run a's read, 39 leave run a's result and 2
// another". "" where that was not asked.
std::string asked_text(const ProofReport& proof);

// Whether a run comes out as it was when it is made again. "" where that was not looked at.
std::string repetition_text(const Report& report);

// "its re-run gives other values at model.py:12", of an event of the run that was made again; ""
// where it gave the same.
std::string repeat_text(const Run& run, const EventRef& event, Repeat repeat);

}  // namespace opguard
