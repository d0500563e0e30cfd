// invariants/invariants_file.h: invariants as JSON: docs/formats/invariants.md.
//
//   {"opguard_invariants": 1, "invariants": [
//     {"view": "backward", "when": [], "then": {"column": "stale", "is": "no"}}]}
//
// Counterexample: a rule of a view that this version does not know is no error. It is left out and
// named.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "invariants/invariant.h"
#include "support/diagnostics.h"

namespace opguard {

inline constexpr int kInvariantsVersion = 1;
inline constexpr size_t kMostInvariants = 100'000;

struct InvariantsFile {
  std::string tool{};  // that made it, "opguard 0.1.0"; "" of one that a person wrote
  std::vector<std::pair<std::string, uint32_t>> programs{};  // name, runs
  // In the order of the file; none twice, by id.
  std::vector<Invariant> invariants{};
  std::vector<std::string> notes{};   // rules that were left out, a sentence each
  std::vector<std::string> unread{};  // these rules, as JSON: they are written again
};

// `path` is what complaints call it. False: diags says why. A rule with an unknown view or column
// is left out and noted.
bool parse_invariants(const std::string& path, const std::string& text,
                      std::span<const RuleView> views, InvariantsFile& file, Diagnostics& diags);
std::string format_invariants(const InvariantsFile& file);

// Rules of both, by view and id. Where both have one, the evidence of more programs stays, and
// whoever mutes it mutes it. A structural one keeps its words and its severity, of two the more
// severe one. Programs are those of both. The order of files changes nothing.
InvariantsFile merge_invariants(const InvariantsFile& a, const InvariantsFile& b);
// The only rule whose id begins so; nullptr: none, or several.
const Invariant* find_invariant(const InvariantsFile& file, const std::string& id);
// That rule muted, or heard again where `because` is ""; false: none, or several.
bool mute_invariant(InvariantsFile& file, const std::string& id, const std::string& because);

}  // namespace opguard
