// session/simulate.h: is it the arithmetic or the configuration? `opguard diff --simulate`.
//
//   a     python train.py                     as it is: the reference
//   b     torchrun ... train.py --tp 2        every rank unsharded: python/opguard/simulate
//   then  rank 0 of b against a, rank 1 of b against a
//
// Ranks of b that have the same data are compared with the same rank of a; b's log names them.
// Counterexample: b has two data parallel ranks and a is one process. Neither of them has a's data,
// so nothing is compared.
//
// The cost: an alignment for each rank of b.
#pragma once

#include <map>
#include <string>

#include "llvm/Support/Error.h"
#include "report/simulated.h"
#include "session/report_verdict.h"
#include "support/launch.h"

namespace opguard {

// What asks a program of this side to be simulated, or not to be.
Variables simulate_environment(bool on);

// The line in which a simulated program has said why it is not, of its output; "" where it ran.
std::string refusal_in(const std::string& output);

// By rank of b: the rank of a that has the same data. Error: b was not simulated, or a has another
// number of data parallel ranks.
llvm::Expected<std::map<int32_t, int32_t>> ranks_of_a(const Run& a, const Run& b);

// Prints the line, then the report on the first rank that says most: one that differs, else one
// that cannot be compared. The exit code as of report_verdict().
int report_simulated(const std::string& dir_a, const std::string& dir_b, const Coverage& coverage,
                     const ReportOptions& options);

}  // namespace opguard
