// session/edit_invariants.h: `opguard invariants FILE list|show|mute|merge`.
#pragma once

#include <cstdint>
#include <string>

namespace opguard {

enum class InvariantsAction : uint8_t { list, show, mute, merge };

struct EditInvariantsOptions {
  std::string file;  // or "builtin"
  InvariantsAction action = InvariantsAction::list;
  std::string id, because, other, out;
};

// The exit code.
int edit_invariants(const EditInvariantsOptions& opt);

}  // namespace opguard
