// suspects/exchange_search.h: which of several changes is the cause, by runs that exchange some.
//
//   four groups, as likely      run {0, 1}: healed      run {0}: not healed      so 1 is the cause
//   likelihood 16, 1, 1, 1      run {0}: healed, and found by one run
//
// Each run is made with some groups as in a. Healed: the cause is among them. Not healed: among the
// rest.
//
// Counterexample: two causes. No half heals what both are needed for, and every answer is "not
// healed". Then nothing is found; all groups in one run would tell.
//
// The cost: a run of the program for each question, most_runs() of them where the likelihoods are
// equal.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace opguard {

// Which group is the cause, by as few runs as may be: halves of what is left, by likelihood.
class ExchangeSearch {
 public:
  // likelihood: of each group.
  explicit ExchangeSearch(std::vector<double> likelihood);

  // Groups to run with text of a: indices, ascending. Empty: nothing is left to be asked.
  std::vector<size_t> next() const;
  // All that are left; how likely it is that the cause is among `asked`, if it is among these.
  const std::vector<size_t>& left() const { return left_; }
  double share(const std::vector<size_t>& asked) const;
  // What that run came to.
  void tell(const std::vector<size_t>& asked, bool healed);
  // It came to nothing: the program failed with these groups of a. The rest of what is left is
  // asked next, which tells as much.
  void failed(const std::vector<size_t>& asked);
  // The one group without which nothing is healed.
  std::optional<size_t> found() const;
  // Groups that healed it together, of which one is the cause; none yet: empty.
  std::vector<size_t> healed() const;
  // At most so many further runs tell it, if it is among them at all.
  uint32_t most_runs() const;

 private:
  std::vector<size_t> rest(const std::vector<size_t>& of) const;

  std::vector<double> likelihood_;
  std::vector<size_t> left_;    // one of them is the cause
  bool healed_ = false;         // a run was healed with all that are left, and perhaps more
  std::vector<size_t> failed_;  // of these; the rest was not asked yet
  bool stuck_ = false;          // both failed
};

}  // namespace opguard
