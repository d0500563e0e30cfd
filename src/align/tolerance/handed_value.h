// align/tolerance/handed_value.h: the call that is named in place of an operator of a port that was
// given the wrong value.
//
//   a   x = x + self.attn(self.norm1(x))       norm1 reads x there
//   b   x = self.norm(self.attention(x) + x)   in attention, value(x) reads it
//
// The reference has another module between the value and what reads it in the candidate. Parameters
// tell which module of the candidate that is: blocks.0.norm1 is encoder.0.norm. The innermost
// module that holds both, encoder.0, is where the one is called and not the other: its call is
// named.
//
// Counterexamples: an operator in that module's own function; a module that is a part of what the
// reference has as one; a module without parameters; a log that does not tell who called.
//
// The cost: one pass over the candidate's events.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>

#include "align/tolerance/comparison.h"
#include "align/tolerance/helper_call.h"
#include "align/tolerance/port_pivot.h"

namespace opguard {

class HandedValues {
 public:
  HandedValues(const Run& reference, const Run& candidate, const Comparison& comparison);

  // {}: the operator itself is named.
  std::optional<Location> call(const PortPlace& place, HelperCalls& calls) const;

 private:
  // The candidate's module that has the parameters of one of the reference's; {} for none.
  std::optional<std::string> counterpart(const std::string& module) const;
  // The reference's module has parameters of the candidate's: it does that one's work too.
  bool is_part(const std::string& own, const std::string& theirs) const;

  const Run& a_;
  const Run& b_;
  const Comparison& comparison_;
  std::map<std::string, std::set<std::string>> functions_;  // of b: by module, with operators
};

}  // namespace opguard
