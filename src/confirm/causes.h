// confirm/causes.h: which trials are causes, and what each of several is beside the others.
#pragma once

#include <utility>
#include <vector>

#include "confirm/trials.h"

namespace opguard {

class Causes {
 public:
  // The trials must stay.
  explicit Causes(const Trials& trials) : trials_(trials) {}

  // Once, however often it is found.
  void add(size_t trial, ProofState state, bool measured);
  // The trial of the first one in order.
  size_t first() const;
  // With all but this one as in run a, did the runs part?
  bool shown_needed(size_t trial) const;
  Need need_of(size_t trial) const;
  void sort();

  // By trial.
  std::vector<std::pair<size_t, Cause>>& all() { return all_; }
  const std::vector<std::pair<size_t, Cause>>& all() const { return all_; }

 private:
  const Trials& trials_;
  std::vector<std::pair<size_t, Cause>> all_;
};

}  // namespace opguard
