// How a rule is called, in digits and in words, and what its evidence is worth.
//
//   rule     view sequence, call=clip_grad, ever:scaler.scale=yes: since_step:scaler.unscale=yes
//   words    "every call of the library, where call is clip_grad and scaler.scale was ever called:
//            scaler.unscale was called since the last step"
//   id       of a text that has the conditions in alphabetical order, whatever a file's order
//
// Counterexample: the id is not of `says`, `tier`, `severity` or `evidence`. A rule that is muted
// by its id stays muted when it is learned again from more runs.
#include "invariants/invariant.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <string_view>

#include "llvm/Support/xxhash.h"
#include "support/text.h"

namespace opguard {

namespace {

// "dtype=bfloat16 or float32", values in order. Ids are made of it and stand in people's files: it
// must not change.
std::string test_key(const CellTest& test) {
  CellTest sorted = test;
  std::sort(sorted.values.begin(), sorted.values.end());
  std::string key = test.column + (test.negated ? "!=" : "=");
  for (size_t i = 0; i < sorted.values.size(); ++i) key += (i ? " or " : "") + sorted.values[i];
  return key;
}

// "since_step:zero_grad" -> "zero_grad was called since the last step".
std::string call_words(std::string_view column, bool was) {
  constexpr std::pair<std::string_view, std::string_view> kQuestions[] = {
      {"since_last:", " called since the last such call"},
      {"since_step:", " called since the last step"},
      {"ever:", " ever called"}};
  for (const auto& [question, words] : kQuestions)
    if (column.starts_with(question))
      return std::string(column.substr(question.size())) + (was ? " was" : " was not") +
             std::string(words);
  return "";
}

//   held is yes        "held"               held is no, held is not yes    "not held"
//   dtype in a, b, c   "dtype is a, b or c"
std::string test_words(const CellTest& test) {
  std::string name = test.column;
  std::replace(name.begin(), name.end(), '_', ' ');
  if (test.values.size() == 1 && (test.values[0] == "yes" || test.values[0] == "no")) {
    const bool yes = (test.values[0] == "yes") != test.negated;
    const std::string call = call_words(test.column, yes);
    return !call.empty() ? call : yes ? name : "not " + name;
  }
  std::string words = name + (test.negated ? " is not " : " is ");
  for (size_t i = 0; i < test.values.size(); ++i)
    words += (i == 0                       ? ""
              : i + 1 < test.values.size() ? ", "
              : test.negated               ? " nor "
                                           : " or ") +
             test.values[i];
  return words;
}

}  // namespace

const char* tier_name(InvariantTier tier) {
  constexpr const char* kNames[] = {"structural", "general", "program", "usual"};
  return kNames[static_cast<size_t>(tier)];
}

const char* severity_name(InvariantSeverity severity) {
  constexpr const char* kNames[] = {"error", "warning", "note"};
  return kNames[static_cast<size_t>(severity)];
}

std::string invariant_id(const Invariant& invariant) {
  std::vector<std::string> parts;
  for (const CellTest& test : invariant.when) parts.push_back(test_key(test));
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
    text += test_key(invariant.then);
  }
  char id[24];
  // The upper 48 of 64 bits. %.17g above keeps every double apart.
  std::snprintf(id, sizeof id, "%012llx",
                static_cast<unsigned long long>(llvm::xxh3_64bits(text) >> 16));
  return id;
}

std::string invariant_words(const Invariant& invariant, const RuleView& view) {
  std::string words = "every " + std::string(view.subject);
  for (size_t i = 0; i < invariant.when.size(); ++i)
    words += (i ? " and " : ", where ") + test_words(invariant.when[i]);
  if (!invariant.between) return words + ": " + test_words(invariant.then);
  char range[80];
  std::snprintf(range, sizeof range, ": a number between %.3g and %.3g", invariant.between->first,
                invariant.between->second);
  return words + range;
}

std::string evidence_words(const RuleEvidence& evidence) {
  if (evidence.programs == 0) return "not looked at in good runs";
  std::string words = counted(evidence.programs, "good program") + ", " + grouped(evidence.rows) +
                      (evidence.rows == 1 ? " row" : " rows");
  return words + (evidence.breaking == 0
                      ? ", never broken"
                      : ", broken by " + std::to_string(evidence.breaking) + " of them");
}

double risk_95(uint32_t programs, uint32_t broken) {
  if (programs <= broken) return 1.0;
  if (broken == 0) return 1.0 - std::pow(0.05, 1.0 / programs);
  // The chance of so few falls as the risk grows.
  //   risk_95(10, 1) = 0.394: at a higher risk "at most 1 of 10" has a chance below 5 %
  //
  // Sixty halvings are more than a double can tell apart. Each costs a term for each breaker.
  double low = 0, high = 1;
  for (int i = 0; i < 60; ++i) {
    const double risk = (low + high) / 2;
    // The chance that exactly k of them break it, from that of k - 1.
    double term = std::pow(1 - risk, programs), sum = term;
    for (uint32_t k = 1; k <= broken; ++k) {
      term *= risk / (1 - risk) * (programs - k + 1) / k;
      sum += term;
    }
    (sum > 0.05 ? low : high) = risk;
  }
  return high;
}

}  // namespace opguard
