// The order of judging, and of what is told.
//
//   random, data     first: the loaders' orders ask whether torch's generator is seeded
//   arithmetic, collectives, resume, layout
//   then             by surface, and within it violated, left, controlled
//
// Counterexample: two runs of which the second went on from the first one's checkpoint. Their seeds
// and orders differ by right. Operators are still taken from both: which kernels exist depends on
// no file.
//
// The cost: each part goes over its lists of facts, of which the program's side keeps at most 64 of
// a kind.
#include "determinism/judge.h"

#include <algorithm>

namespace opguard {

// By names, in the order of ranks and of loading. Contents are not read: both may lie in folders
// that are gone.
bool loaded_alike(const RunFacts& run, const RunFacts& again) {
  auto files = [](const RunFacts& facts) {
    std::vector<std::string> all;
    for (const ProcessFacts* process : facts.trained())
      for (const Fact& fact : process->list("loaded")) all.push_back(fact.text("file"));
    return all;
  };
  return files(run) == files(again);
}

std::vector<Finding> judge_determinism(const RunFacts& run, const RunFacts* again) {
  std::vector<Finding> found;
  // Behind this each part may take trained().front(): the process of the lowest rank.
  if (run.trained().empty()) return found;
  // Of what is compared; operators are none of it.
  const RunFacts* same = again && loaded_alike(run, *again) ? again : nullptr;
  judge_random(run, same, found);
  judge_data(run, same, found);
  judge_arithmetic(run, again, found);
  judge_collectives(run, same, found);
  judge_resume(run, found);
  judge_layout(run, found);
  auto rank = [](const Finding& finding) {
    return std::pair(finding.surface, 2 - static_cast<int>(finding.hold));
  };
  std::stable_sort(found.begin(), found.end(),
                   [&](const Finding& a, const Finding& b) { return rank(a) < rank(b); });
  return found;
}

}  // namespace opguard
