// Sets of commits are rows of bits. Parents have lower numbers, so the ancestors of a commit are
// the union of its parents' rows, made in one pass.
//
//   suspects = ancestors of the first bad one
//              without the ancestors of each good one
//              kept to the ancestors of each other bad one, where anything is left of that
//
// A commit's share is how many suspects are among its ancestors, itself among them. If it is bad
// the share is left, if it is good the rest. So the best share is a half; of k tries at once,
// 1/(k+1), 2/(k+1), ...
//
// The cost: n rows of n bits; each step sorts the suspects once for each try.
#include "session/bisect_search.h"

#include <algorithm>
#include <bit>
#include <cstdlib>

namespace opguard {
namespace {

// A set of commits.
class CommitSet {
 public:
  explicit CommitSet(size_t count) : words_((count + 63) / 64) {}
  void add(uint32_t commit) { words_[commit / 64] |= uint64_t(1) << commit % 64; }
  bool has(uint32_t commit) const { return words_[commit / 64] >> commit % 64 & 1; }
  void add(const CommitSet& other) {
    for (size_t i = 0; i < words_.size(); ++i) words_[i] |= other.words_[i];
  }
  void keep(const CommitSet& other) {
    for (size_t i = 0; i < words_.size(); ++i) words_[i] &= other.words_[i];
  }
  void remove(const CommitSet& other) {
    for (size_t i = 0; i < words_.size(); ++i) words_[i] &= ~other.words_[i];
  }
  // How many commits both hold.
  size_t shared(const CommitSet& other) const {
    size_t count = 0;
    for (size_t i = 0; i < words_.size(); ++i)
      count += size_t(std::popcount(words_[i] & other.words_[i]));
    return count;
  }

 private:
  std::vector<uint64_t> words_;
};

// By commit: its ancestors, and itself.
std::vector<CommitSet> ancestors_of(const CommitParents& parents) {
  std::vector<CommitSet> all;
  all.reserve(parents.size());
  for (uint32_t i = 0; i < parents.size(); ++i) {
    CommitSet own(parents.size());
    own.add(i);
    for (uint32_t parent : parents[i]) own.add(all[parent]);
    all.push_back(std::move(own));
  }
  return all;
}

// 1/2, 1/4, 3/4, 1/8, ...: van der Corput's sequence, from k = 1. Each new number lies in the
// widest gap that the earlier ones have left. So k skipped commits are spread over all that may be
// asked, and not tried one beside the other.
double spread(size_t k) {
  double at = 0, part = 0.5;
  for (; k > 0; k /= 2, part /= 2) at += double(k % 2) * part;
  return at;
}

}  // namespace

BisectStep bisect_step(const CommitParents& parents, const std::vector<CommitMark>& marks,
                       uint32_t wanted) {
  BisectStep step;
  if (parents.empty()) return step;
  const auto count = static_cast<uint32_t>(parents.size());
  const std::vector<CommitSet> ancestors = ancestors_of(parents);

  // The first bad one in this order has no bad ancestor.
  step.bad = count - 1;
  for (uint32_t i = count; i-- > 0;)
    if (marks[i] == CommitMark::bad) step.bad = i;
  CommitSet suspects = ancestors[step.bad];
  for (uint32_t i = 0; i < count; ++i)
    if (marks[i] == CommitMark::good && !ancestors[i].has(step.bad)) suspects.remove(ancestors[i]);
  // Two bad commits on two branches: what both come from made them so, if anything is left of it.
  for (uint32_t i = step.bad + 1; i < count; ++i)
    if (marks[i] == CommitMark::bad && suspects.shared(ancestors[i]) > 0)
      suspects.keep(ancestors[i]);
  for (uint32_t i = 0; i < count; ++i)
    if (suspects.has(i)) step.suspects.push_back(i);

  struct Candidate {
    uint32_t commit;
    size_t share;  // of the suspects, its ancestors and itself
  };
  std::vector<Candidate> open;
  const size_t all = step.suspects.size();
  for (uint32_t i : step.suspects) {
    if (marks[i] != CommitMark::unknown) continue;
    // All suspects are its ancestors: it is bad whichever made it so.
    if (const size_t share = ancestors[i].shared(suspects); share < all) open.push_back({i, share});
  }
  const auto skipped = std::count_if(step.suspects.begin(), step.suspects.end(),
                                     [&](uint32_t i) { return marks[i] == CommitMark::skipped; });
  for (uint32_t k = 1; k <= wanted && !open.empty(); ++k) {
    // Times wanted + 1: how far its share is from the k-th of the equal parts.
    auto off = [&](const Candidate& one) {
      return std::abs(int64_t(one.share * (wanted + 1)) - int64_t(all * k));
    };
    std::stable_sort(open.begin(), open.end(),
                     [&](const Candidate& x, const Candidate& y) { return off(x) < off(y); });
    // Squared: not further away than it must be.
    const double away = spread(size_t(skipped));
    const auto at = static_cast<ptrdiff_t>(away * away * double(open.size() - 1));
    step.next.push_back(open[size_t(at)].commit);
    open.erase(open.begin() + at);
  }
  return step;
}

uint32_t tries_left(size_t suspects) {
  return suspects < 2 ? 0 : uint32_t(std::bit_width(suspects - 1));
}

}  // namespace opguard
