// session/edit_invariants.h: `opguard invariants FILE list|show|mute|merge`.
//
//   list    a line a rule: [b23ae0bbdb5a], its severity and tier, what it says
//   show    the same, with its condition and its evidence
//   mute    the rule stays in the file with its reason, and is not looked at
//   merge   two files become one
//
// Counterexample: to delete a rule by hand. The next `infer` would find it again, and nobody knows
// why it was gone.
#pragma once

#include <cstdint>
#include <string>

namespace opguard {

enum class InvariantsAction : uint8_t { list, show, mute, merge };

struct EditInvariantsOptions {
  std::string file;  // or "builtin"
  InvariantsAction action = InvariantsAction::list;
  // id: a rule's, or its beginning; because: of mute; other, out: of merge.
  std::string id, because, other, out;
};

// The exit code.
int edit_invariants(const EditInvariantsOptions& opt);

}  // namespace opguard
