// report/proof_text.h: the sentences of a proof: what a re-run says (confirm/proof_reason.h), and
// what was proven, in words: docs/design/proof.md.
//
// This is the only place where they are worded. Nothing is escaped: a name may hold what drives a
// terminal, and is shown() by who prints it.
#pragma once

#include <string>
#include <vector>

#include "confirm/proof.h"
#include "report/report.h"

namespace opguard {

// One sentence, "" of none. a, b: the two runs.
std::string words(const Run& a, const Run& b, const ProofReason& reason);
// Why there is nothing to put: "it runs too often to be made good everywhere".
std::string words(Refusal refusal);
// side: the run that was made again.
std::string words(const Run& run, const Obstacle& obstacle, int side = 1);
// "model.py:12, model.py:30-32 and 2 more"
std::string words(const std::vector<TextPlace>& places);

// As JSON and the page have them.
const char* proof_name(ProofState state);
const char* need_name(Need need);

// What one of several causes is to the difference: one sentence, "" of the only one.
std::string need_text(const ProofReport& proof, const Cause& cause);

// "of 41 executions that differ, each given what run a's read, 39 leave run a's result and 2
// another". "" where that was not asked.
std::string asked_text(const ProofReport& proof);

// Whether a run comes out as it was when it is made again. "" where that was not looked at.
std::string repetition_text(const Report& report);

}  // namespace opguard
