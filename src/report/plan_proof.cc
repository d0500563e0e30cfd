#include "report/plan_proof.h"

#include <algorithm>
#include <cstdio>
#include <fstream>

#include "support/text.h"

namespace opguard {
namespace {

using nlohmann::json;
using proving::Statement;

// What a proof rests on.
constexpr const char* kAssumed[] = {
    "operators and collectives mean what docs/formats/prove.md says",
    "arithmetic is exact: rounding and casts are left out",
    "no denominator is zero; roots and logarithms are of positive numbers",
    "a float that is the rounding of a short fraction is that fraction",
    "tokens are below their size",
    "a send never waits for its receiver",
};

const char* dims_assumption(const proving::Result& result) {
  return result.full ? "what holds at these dims holds at the full ones, where the program is the "
                       "same in the ranks that were looked at"
                     : "what holds at these dims holds at larger ones";
}

std::vector<std::string> assumptions(const proving::Result& result) {
  std::vector<std::string> all(std::begin(kAssumed), std::end(kAssumed));
  all.push_back(dims_assumption(result));
  return all;
}

// The longest of the blocks that run another number of times at full dims.
std::string full_text(const proving::FullComparison& full) {
  if (!full.difference.empty()) return "";
  std::string text = "  the same program at full dims: " + counted(full.looked_at, "rank") +
                     " of " + std::to_string(full.world) + " looked at, " +
                     counted(full.operators, "operator");
  const auto longest =
      std::max_element(full.repeated.begin(), full.repeated.end(),
                       [](const auto& a, const auto& b) { return a.operators < b.operators; });
  if (longest != full.repeated.end())
    text += "; a block of " + counted(longest->operators, "operator") + " runs " +
            std::to_string(longest->full) + " times for " + std::to_string(longest->reduced);
  return text + "\n";
}

json full_json(const proving::FullComparison& full) {
  json repeated = json::array();
  for (const auto& r : full.repeated)
    repeated.push_back({{"reduced", r.reduced}, {"full", r.full}, {"operators", r.operators}});
  json found = {{"world", full.world},         {"looked_at", full.looked_at},
                {"operators", full.operators}, {"dims", full.dims},
                {"repeated", repeated},        {"same", full.difference.empty()}};
  if (!full.difference.empty()) found["difference"] = full.difference;
  return found;
}

std::string number_text(double x) {
  char text[40];
  std::snprintf(text, sizeof(text), "%.6g", x);
  return text;
}

std::string line_of(const std::string& path, int64_t line) {
  std::ifstream file(path);
  std::string text;
  for (int64_t i = 0; i < line; ++i)
    if (!std::getline(file, text)) return "";
  const size_t begin = text.find_first_not_of(" \t");
  return begin == std::string::npos ? "" : text.substr(begin);
}

// "aten.mm.default" -> "mm"
std::string short_name(const std::string& op) {
  const size_t dot = op.find('.');
  if (dot == std::string::npos) return op;
  return op.substr(dot + 1, op.find('.', dot + 1) - dot - 1);
}

std::string statement_text(const char* what, const Statement& s) {
  std::string text = std::string("  ") + what + " " + s.file + ":" + std::to_string(s.line);
  if (!s.function.empty()) text += ", in " + s.function;
  text += ": " + short_name(s.op) + (s.backward ? " of the backward pass" : "") + ", rank " +
          std::to_string(s.rank) + "\n";
  const std::string source = line_of(s.file, s.line);
  return source.empty() ? text : text + "      " + source + "\n";
}

std::string position_text(const std::vector<int64_t>& position) {
  std::string text = "[";
  for (size_t i = 0; i < position.size(); ++i)
    text += (i ? ", " : "") + std::to_string(position[i]);
  return text + "]";
}

json statement_json(const Statement& s) {
  return {{"rank", s.rank}, {"operator", s.op},       {"file", s.file},
          {"line", s.line}, {"function", s.function}, {"backward", s.backward}};
}

const char* verdict_name(proving::Verdict verdict) {
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

std::string refutation_text(const proving::Result& result) {
  const proving::Difference& d = *result.difference;
  std::string text = "refuted: " + d.output + " of rank " + std::to_string(d.rank) +
                     " is not the model's\n  at " + position_text(d.position) + ": the model has " +
                     number_text(d.logical) + ", the plan " + number_text(d.plan);
  if (d.factor) text += ", a factor of " + number_text(*d.factor) + " whatever the input";
  text +=
      "\n  " + std::to_string(d.differing) + " of " + counted(d.elements, "element") + " differ";
  if (!result.other_outputs.empty())
    text += ", and " + counted(result.other_outputs.size(), "other output");
  text += "\n";
  const bool apart =
      d.passed && d.made && (d.passed->line != d.made->line || d.passed->file != d.made->file);
  if (d.made) text += statement_text("made at  ", *d.made);
  if (d.fed) text += statement_text("fed by   ", *d.fed);
  if (apart) text += statement_text("passed at", *d.passed);
  return text;
}

}  // namespace

std::string plan_proof_text(const proving::Captured& captured, const proving::Result& result) {
  std::string text;
  switch (result.verdict) {
    case proving::Verdict::proved:
      text = "proved: the plan computes what its model computes, over the reals\n";
      break;
    case proving::Verdict::refuted:
      text = result.difference ? refutation_text(result) : "refuted: " + result.why + "\n";
      break;
    case proving::Verdict::unknown:
      text = "unknown: " + result.why + "\n";
      break;
  }
  if (result.at) text += statement_text("at", *result.at);
  text += "  " + counted(captured.world, "rank") + ", " +
          counted(result.plan_operators, "operator") + " for the model's " +
          std::to_string(result.logical_operators);
  if (result.elements > 0)
    text += "; " + counted(result.elements, "element") + " of " + counted(result.outputs, "output");
  char seconds[32];
  std::snprintf(seconds, sizeof(seconds), "; %.1f s\n", result.seconds);
  text += seconds;
  if (result.full) text += full_text(*result.full);
  for (const std::string& name : result.not_compared)
    text += "  not compared, since the model has no such output: " + name + "\n";
  if (result.verdict == proving::Verdict::proved && !result.thin.empty()) {
    text += "  a rank has one element along a dimension of";
    for (const std::string& name : result.thin) text += " " + name;
    text += ": what sums and what averages over it are the same here; --dims gives it more\n";
  }
  if (result.verdict == proving::Verdict::proved) {
    text += "  assumed:\n";
    for (const std::string& line : assumptions(result)) text += "    " + line + "\n";
  }
  return text;
}

json plan_proof_json(const proving::Captured& captured, const proving::Result& result) {
  json found = {
      {"version", 1},
      {"verdict", verdict_name(result.verdict)},
      {"plan", captured.plan},
      {"world", captured.world},
      {"dims", captured.dims},
      {"outputs", result.outputs},
      {"elements", result.elements},
      {"operators", {{"logical", result.logical_operators}, {"plan", result.plan_operators}}},
      {"terms", result.terms},
      {"seconds", result.seconds},
      {"thin", result.thin},
      {"not_compared", result.not_compared}};
  if (result.full) found["full"] = full_json(*result.full);
  if (!result.why.empty()) found["why"] = result.why;
  if (result.at) found["at"] = statement_json(*result.at);
  if (result.verdict == proving::Verdict::proved) found["assumed"] = assumptions(result);
  if (!result.difference) return found;
  const proving::Difference& d = *result.difference;
  json& difference = found["difference"] = {{"output", d.output},
                                            {"rank", d.rank},
                                            {"position", d.position},
                                            {"elements", d.elements},
                                            {"differing", d.differing},
                                            {"logical", d.logical},
                                            {"plan", d.plan},
                                            {"point", d.point},
                                            {"other_outputs", result.other_outputs}};
  if (d.factor) difference["factor"] = *d.factor;
  if (d.made) difference["made"] = statement_json(*d.made);
  if (d.fed) difference["fed"] = statement_json(*d.fed);
  if (d.passed) difference["passed"] = statement_json(*d.passed);
  return found;
}

std::string rules_text(const proving::RulesChecked& checked) {
  std::string text;
  size_t wrong = 0;
  uint64_t elements = 0;
  double error = 0;
  for (const proving::RuleResult& r : checked.cases) {
    elements += r.elements;
    if (r.wrong.empty()) {
      error = std::max(error, r.error);
      continue;
    }
    ++wrong;
    text += "WRONG " + r.name + ": " + r.wrong + "\n";
  }
  char largest[40];
  std::snprintf(largest, sizeof(largest), "%.1e", error);
  text += counted(checked.cases.size() - wrong, "case") + " of " +
          std::to_string(checked.cases.size()) + " as torch computes them, " +
          counted(elements, "number") + ", at most " + largest + " apart\n";
  text += counted(checked.names.size(), "operator") + " with a meaning:";
  for (const std::string& name : checked.names) text += " " + name;
  text += "\noperators with a meaning that no case runs:";
  for (const std::string& name : checked.not_compared) text += " " + name;
  return text + (checked.not_compared.empty() ? " none\n" : "\n");
}

}  // namespace opguard
