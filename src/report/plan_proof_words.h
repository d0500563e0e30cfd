// report/plan_proof_words.h: what the reports of `opguard prove` say in the same words: the
// terminal, the page, SARIF.
//
//   Statement {rank 0, op "aten.mm.default", backward}    "mm of the backward pass, rank 0"
//   Result {proved, two ranks}                            "2 ranks, 68 operators for ..."
//
// Counterexample: a sentence in each report. A reader of two would have to guess whether they say
// the same.
#pragma once

#include <string>
#include <vector>

#include "prove/check.h"
#include "record/location.h"

namespace opguard {

// "proved", "refuted", "unknown".
const char* proof_verdict(proving::Verdict verdict);
// Behind the verdict: "grad:x of rank 0 is not the model's", or why it is unknown.
std::string proof_headline(const proving::Result& result);
// "8 of 8 elements differ, and 1 other output"; of a refutation by numbers.
std::string proof_extent(const proving::Result& result);
// "2 ranks, 68 operators for the model's 31; 82 elements of 10 outputs; 0.0 s".
std::string proof_size(const proving::Captured& captured, const proving::Result& result);
// What a proof rests on.
std::vector<std::string> proof_assumptions(const proving::Result& result);
// Of any verdict: operators and outputs that the user has granted.
std::vector<std::string> proof_grants(const proving::Result& result);
// What the program at full dims has shown; "" where it was not compared or is another one.
std::string proof_full(const proving::Result& result);

// "mm of the backward pass, rank 0".
std::string proof_operator(const proving::Statement& statement);
// "mlp.py:40, in step", of the lines that called it: the nearest two. Of a package's code also the
// nearest line that is of no package.
std::vector<std::string> proof_callers(const proving::Statement& statement);
// Its line; Location::file is relative to `tree` where it lies there.
Location proof_location(const proving::Statement& statement, const std::string& tree);
// "[0, 3]".
std::string proof_position(const std::vector<int64_t>& position);
// Six digits.
std::string proof_number(double x);
// Whether the statement that passed the wrong sum on stands on another line than its maker.
bool passed_elsewhere(const proving::Difference& difference);
// The same of the statement that used it first, and of both.
bool used_elsewhere(const proving::Difference& difference);

}  // namespace opguard
