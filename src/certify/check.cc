#include "certify/check.h"

#include <algorithm>

#include "support/diagnostics.h"
#include "support/exit_code.h"
#include "support/nearest.h"

namespace opguard {

const char* kind_name(CheckKind kind) {
  switch (kind) {
    case CheckKind::default_path:
      return "default-path";
    case CheckKind::replay:
      return "replay";
    case CheckKind::resume:
      return "resume";
    case CheckKind::ranks:
      return "ranks";
    case CheckKind::canaries:
      return "canaries";
  }
  return "";
}

const char* tier_name(Tier tier) {
  switch (tier) {
    case Tier::bit_exact:
      return "bit-exact";
    case Tier::tolerance:
      return "tolerance";
    case Tier::recorded:
      return "recorded";
  }
  return "";
}

const char* outcome_name(Certified outcome) {
  switch (outcome) {
    case Certified::yes:
      return "certified";
    case Certified::accepted:
      return "accepted";
    case Certified::no:
      return "not certified";
    case Certified::undecided:
      return "could not tell";
  }
  return "";
}

// In the order of the command line. What is named twice comes twice.
llvm::Expected<std::vector<Check>> chosen_checks(const std::vector<Check>& all,
                                                 const std::vector<std::string>& names) {
  if (names.empty()) return all;
  std::vector<Check> chosen;
  std::string known;
  for (const Check& check : all) known += (known.empty() ? "" : ", ") + check.name;
  for (const std::string& name : names) {
    const auto at = std::find_if(all.begin(), all.end(),
                                 [&](const Check& check) { return check.name == name; });
    if (at == all.end()) return make_error("no check '" + name + "'; there are " + known);
    chosen.push_back(*at);
  }
  return chosen;
}

// A check that is not certified counts more than one that could not tell: it is known. Accepted is
// certified.
int exit_code(const std::vector<CheckResult>& results) {
  auto any = [&](Certified outcome) {
    return std::any_of(results.begin(), results.end(),
                       [&](const CheckResult& result) { return result.outcome == outcome; });
  };
  if (any(Certified::no)) return kNo;
  return any(Certified::undecided) ? kCouldNotTell : kYes;
}

}  // namespace opguard
