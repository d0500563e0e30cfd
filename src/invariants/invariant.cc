#include "invariants/invariant.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "llvm/Support/xxhash.h"
#include "support/text.h"

namespace opguard {

namespace {

std::string test_words(const CellTest& test) {
  std::string words = test.column + "=";
  for (size_t i = 0; i < test.values.size(); ++i) words += (i ? " or " : "") + test.values[i];
  return words;
}

}  // namespace

const char* tier_name(InvariantTier tier) {
  constexpr const char* kNames[] = {"structural", "general", "program"};
  return kNames[static_cast<size_t>(tier)];
}

const char* severity_name(InvariantSeverity severity) {
  constexpr const char* kNames[] = {"error", "warning", "note"};
  return kNames[static_cast<size_t>(severity)];
}

std::string invariant_id(const Invariant& invariant) {
  std::vector<std::string> parts;
  for (const CellTest& test : invariant.when) {
    CellTest sorted = test;
    std::sort(sorted.values.begin(), sorted.values.end());
    parts.push_back(test_words(sorted));
  }
  std::sort(parts.begin(), parts.end());
  std::string text = invariant.view + "\n";
  for (const std::string& part : parts) text += part + "\n";
  text += "=> ";
  if (invariant.between) {
    char range[64];
    std::snprintf(range, sizeof range, "%.17g..%.17g", invariant.between->first,
                  invariant.between->second);
    text += range;
  } else {
    text += test_words(invariant.then);
  }
  char id[24];
  std::snprintf(id, sizeof id, "%08x", static_cast<unsigned>(llvm::xxh3_64bits(text) >> 32));
  return id;
}

std::string invariant_words(const Invariant& invariant, const View& view) {
  std::string words = "every " + std::string(view.subject);
  for (size_t i = 0; i < invariant.when.size(); ++i)
    words += (i ? ", " : " with ") + test_words(invariant.when[i]);
  if (!invariant.between) return words + ": " + test_words(invariant.then);
  char range[80];
  std::snprintf(range, sizeof range, ": between %.3g and %.3g", invariant.between->first,
                invariant.between->second);
  return words + range;
}

std::string evidence_words(const Evidence& evidence) {
  if (evidence.programs == 0) return "not looked at in good runs";
  std::string words = counted(evidence.programs, "good program") + ", " + grouped(evidence.rows) +
                      (evidence.rows == 1 ? " row" : " rows");
  return words + (evidence.breaking == 0
                      ? ", never broken"
                      : ", broken by " + std::to_string(evidence.breaking) + " of them");
}

double risk_95(uint32_t programs) {
  return programs == 0 ? 1.0 : 1.0 - std::pow(0.05, 1.0 / programs);
}

}  // namespace opguard
