#include "report/plan_proof_words.h"

#include <algorithm>
#include <cstdio>

#include "support/text.h"

namespace opguard {
namespace {

// "aten.mm.default" -> "mm"
std::string short_name(const std::string& op) {
  const size_t dot = op.find('.');
  if (dot == std::string::npos) return op;
  return op.substr(dot + 1, op.find('.', dot + 1) - dot - 1);
}

}  // namespace

const char* proof_verdict(proving::Verdict verdict) {
  switch (verdict) {
    case proving::Verdict::proved:
      return "proved";
    case proving::Verdict::refuted:
      return "refuted";
    case proving::Verdict::unknown:
      break;
  }
  return "unknown";
}

std::string proof_headline(const proving::Result& result) {
  if (result.verdict == proving::Verdict::proved)
    return "the plan computes what its model computes, over the reals";
  if (!result.difference) return result.why;
  const proving::Difference& d = *result.difference;
  return d.output + " of rank " + std::to_string(d.rank) + " is not the model's";
}

std::string proof_extent(const proving::Result& result) {
  const proving::Difference& d = *result.difference;
  std::string text = std::to_string(d.differing) + " of " + counted(d.elements, "element") +
                     (d.differing == 1 ? " differs" : " differ");
  if (!result.other_outputs.empty())
    text += ", and " + counted(result.other_outputs.size(), "other output");
  return text;
}

std::string proof_size(const proving::Captured& captured, const proving::Result& result) {
  std::string text = counted(captured.world, "rank") + ", " +
                     counted(result.plan_operators, "operator") + " for the model's " +
                     std::to_string(result.logical_operators);
  if (result.elements > 0)
    text += "; " + counted(result.elements, "element") + " of " + counted(result.outputs, "output");
  char seconds[32];
  std::snprintf(seconds, sizeof(seconds), "; %.1f s", result.seconds);
  return text + seconds;
}

std::string proof_thin(const proving::Result& result) {
  if (result.verdict != proving::Verdict::proved || result.thin.empty()) return "";
  std::string text = "a rank has one element along a dimension of";
  for (const std::string& name : result.thin) text += " " + name;
  return text + ": what sums and what averages over it are the same here; --dims gives it more";
}

std::vector<std::string> proof_assumptions(const proving::Result& result) {
  std::vector<std::string> assumed = {
      "operators and collectives mean what docs/formats/prove.md says",
      "arithmetic is exact: rounding and casts are left out",
      "no denominator is zero; roots and logarithms are of positive numbers",
      "a float that is the rounding of a short fraction is that fraction",
      "tokens are below their size",
      "a send never waits for its receiver",
      result.full
          ? "what holds at these dims holds at the full ones, where the program is the same "
            "in the ranks that were looked at"
          : "what holds at these dims holds at larger ones",
  };
  if (result.decided_by_solver > 0)
    assumed.push_back("Z3 " + result.solver + " is right about " +
                      counted(result.decided_by_solver, "element") + ", which it decided");
  return assumed;
}

std::string proof_full(const proving::Result& result) {
  if (!result.full || !result.full->difference.empty()) return "";
  const proving::FullComparison& full = *result.full;
  std::string text = "the same program at full dims: " + counted(full.looked_at, "rank") + " of " +
                     std::to_string(full.world) + " looked at, " +
                     counted(full.operators, "operator");
  const auto longest =
      std::max_element(full.repeated.begin(), full.repeated.end(),
                       [](const auto& a, const auto& b) { return a.operators < b.operators; });
  if (longest == full.repeated.end()) return text;
  return text + "; a block of " + counted(longest->operators, "operator") + " runs " +
         std::to_string(longest->full) + " times for " + std::to_string(longest->reduced);
}

std::string proof_operator(const proving::Statement& s) {
  return short_name(s.op) + (s.backward ? " of the backward pass" : "") + ", rank " +
         std::to_string(s.rank);
}

Location proof_location(const proving::Statement& s, const std::string& tree) {
  Location at;
  at.path = s.file;
  at.file =
      !tree.empty() && s.file.starts_with(tree + "/") ? s.file.substr(tree.size() + 1) : s.file;
  at.line = static_cast<uint32_t>(s.line);
  at.function = s.function;
  return at;
}

std::string proof_position(const std::vector<int64_t>& position) {
  std::string text = "[";
  for (size_t i = 0; i < position.size(); ++i)
    text += (i ? ", " : "") + std::to_string(position[i]);
  return text + "]";
}

std::string proof_number(double x) {
  char text[40];
  std::snprintf(text, sizeof(text), "%.6g", x);
  return text;
}

bool passed_elsewhere(const proving::Difference& d) {
  return d.passed && d.made && (d.passed->line != d.made->line || d.passed->file != d.made->file);
}

}  // namespace opguard
