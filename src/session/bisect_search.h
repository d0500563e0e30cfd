// session/bisect_search.h: which commits to try next, and which may still be the first bad one.
//
//      1 - 2 - 4 - 5      5 is bad, and 2 was found good: 3, 4, 5 are left.
//       \     /           To try 3 or 4 leaves two commits at most.
//        3 ---
//
// It is `git bisect` as a function: the commit to try is that whose ancestors among the suspects
// are nearest to half of them. Several are tried at once where their shares are equal parts.
//
// Counterexample: a commit that does not run. It stays a suspect and is not asked again. The next
// one is looked for away from it, since commits beside it are likely to fail as well. Where no
// suspect is left to be asked, all of them are the answer.
//
// The cost: a bit for each pair of commits, and as many steps.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace opguard {

enum class CommitMark : uint8_t {
  unknown,
  good,     // as the reference
  bad,      // it differs
  skipped,  // it does not run, or nobody can tell
};

// Of each commit its parents among the candidates: ancestors of BAD that are none of GOOD. Parents
// have lower numbers, and BAD is the last.
using CommitParents = std::vector<std::vector<uint32_t>>;

// Beyond it the bits would take a gigabyte.
inline constexpr size_t kMostCandidateCommits = 65'536;

struct BisectStep {
  uint32_t bad = 0;                // the first commit known to be bad
  std::vector<uint32_t> suspects;  // each may be the first bad one; ascending, never empty
  std::vector<uint32_t> next;      // to be tried now, the best first; empty: the search has ended
};

// The last commit is taken to be bad whatever its mark. A commit that is good although an ancestor
// of it is bad is passed over: somewhere before it the first bad one is.
// At most `wanted` are in `next`.
BisectStep bisect_step(const CommitParents& parents, const std::vector<CommitMark>& marks,
                       uint32_t wanted = 1);

// How many more commits are tried at most, where none is skipped and one is tried at a time.
uint32_t tries_left(size_t suspects);

}  // namespace opguard
