// determinism/judge.h: facts -> findings. Pure: no files, no clock.
//
// `again` is the same program run once more, with deterministic algorithms asked for. It tells two
// things that one run cannot: the operators without a deterministic kernel, and what differs by
// itself.
//
//   torch.manual_seed(int(time.time()))   run 1: 1732650000, run 2: 1732650004: seed_differs
//   order = list(set_of_names)            another order of indices: order_differs
//
// Counterexample: what one run loaded from a checkpoint that the other wrote. Their seeds and
// orders are not compared then. The cost: nothing beside reading the facts.
#pragma once

#include <vector>

#include "determinism/facts.h"
#include "determinism/finding.h"

namespace opguard {

// again: nullptr where it ran once. Ordered by surface, violated first within.
std::vector<Finding> judge_determinism(const RunFacts& run, const RunFacts* again);

// Whether both runs began with the same files.
bool loaded_alike(const RunFacts& run, const RunFacts& again);

// The parts; each adds its surface's findings.
void judge_random(const RunFacts& run, const RunFacts* again, std::vector<Finding>& out);
// Reads what judge_random() has put into `out`, so it comes behind it.
void judge_data(const RunFacts& run, const RunFacts* again, std::vector<Finding>& out);
void judge_arithmetic(const RunFacts& run, const RunFacts* again, std::vector<Finding>& out);
void judge_collectives(const RunFacts& run, const RunFacts* again, std::vector<Finding>& out);
void judge_resume(const RunFacts& run, std::vector<Finding>& out);
void judge_layout(const RunFacts& run, std::vector<Finding>& out);

}  // namespace opguard
