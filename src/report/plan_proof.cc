#include "report/plan_proof.h"

#include <algorithm>
#include <cstdio>
#include <fstream>

#include "report/plan_proof_words.h"
#include "support/text.h"

namespace opguard {
namespace {

using nlohmann::json;
using proving::Statement;

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

std::string line_of(const std::string& path, int64_t line) {
  std::ifstream file(path);
  std::string text;
  for (int64_t i = 0; i < line; ++i)
    if (!std::getline(file, text)) return "";
  const size_t begin = text.find_first_not_of(" \t");
  return begin == std::string::npos ? "" : text.substr(begin);
}

std::string statement_text(const char* what, const Statement& s) {
  std::string text = std::string("  ") + what + " " + s.file + ":" + std::to_string(s.line);
  if (!s.function.empty()) text += ", in " + s.function;
  text += ": " + proof_operator(s) + "\n";
  const std::string source = line_of(s.file, s.line);
  return source.empty() ? text : text + "      " + source + "\n";
}

json statement_json(const Statement& s) {
  return {{"rank", s.rank}, {"operator", s.op},       {"file", s.file},
          {"line", s.line}, {"function", s.function}, {"backward", s.backward}};
}

std::string refutation_text(const proving::Result& result) {
  const proving::Difference& d = *result.difference;
  std::string text = "refuted: " + proof_headline(result) + "\n  at " + proof_position(d.position) +
                     ": the model has " + proof_number(d.logical) + ", the plan " +
                     proof_number(d.plan);
  if (d.factor) text += ", a factor of " + proof_number(*d.factor) + " whatever the input";
  text += "\n  " + proof_extent(result) + "\n";
  if (d.made) text += statement_text("made at  ", *d.made);
  if (d.fed) text += statement_text("fed by   ", *d.fed);
  if (passed_elsewhere(d)) text += statement_text("passed at", *d.passed);
  return text;
}

}  // namespace

std::string plan_proof_text(const proving::Captured& captured, const proving::Result& result) {
  std::string text;
  if (result.difference)
    text = refutation_text(result);
  else
    text = std::string(proof_verdict(result.verdict)) + ": " + proof_headline(result) + "\n";
  if (result.at) text += statement_text("at", *result.at);
  text += "  " + proof_size(captured, result) + "\n";
  if (const std::string full = proof_full(result); !full.empty()) text += "  " + full + "\n";
  for (const std::string& name : result.not_compared)
    text += "  not compared, since the model has no such output: " + name + "\n";
  if (const std::string thin = proof_thin(result); !thin.empty()) text += "  " + thin + "\n";
  if (result.verdict == proving::Verdict::proved) {
    text += "  assumed:\n";
    for (const std::string& line : proof_assumptions(result)) text += "    " + line + "\n";
  }
  return text;
}

json plan_proof_json(const proving::Captured& captured, const proving::Result& result) {
  json found = {
      {"version", 1},
      {"verdict", proof_verdict(result.verdict)},
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
  if (result.decided_by_solver > 0)
    found["solver"] = {{"z3", result.solver}, {"elements", result.decided_by_solver}};
  if (!result.why.empty()) found["why"] = result.why;
  if (result.at) found["at"] = statement_json(*result.at);
  if (result.verdict == proving::Verdict::proved) found["assumed"] = proof_assumptions(result);
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

static std::string algebra_text(const proving::AlgebraProof& algebra) {
  if (algebra.solver.empty())
    return "algebra: not proved, since there is no libz3 here (Debian: libz3-4)\n";
  const auto of = [](const proving::AlgebraProof::Count& count, const char* what) {
    return std::to_string(count.proved) + " of " + counted(count.asked, what);
  };
  std::string text = "algebra, proved by Z3 " + algebra.solver + ": " +
                     std::to_string(algebra.identities.proved) + " of " +
                     std::to_string(algebra.identities.asked) + " identities, " +
                     of(algebra.calls, "call") + " on random terms:";
  for (const auto& [rule, count] : algebra.rules)
    text += " " + rule + " " + std::to_string(count.proved);
  text += "\nof exp and log it is given:";
  for (const char* law : proving::kLaws)
    text += std::string(law == proving::kLaws[0] ? " " : ", ") + law;
  return text + "\n";
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
  const proving::AlgebraProof& algebra = checked.algebra;
  for (const proving::AlgebraQuestion& q : algebra.refuted)
    text += "WRONG algebra: " + q.rule + ": Z3 has numbers where it does not hold\n" + q.script;
  for (const proving::AlgebraQuestion& q : algebra.undecided)
    text += "algebra, not decided: " + q.rule + "\n";
  char largest[40];
  std::snprintf(largest, sizeof(largest), "%.1e", error);
  text += counted(checked.cases.size() - wrong, "case") + " of " +
          std::to_string(checked.cases.size()) + " as torch computes them, " +
          counted(elements, "number") + ", at most " + largest + " apart\n";
  text += counted(checked.names.size(), "operator") + " with a meaning:";
  for (const std::string& name : checked.names) text += " " + name;
  text += "\noperators with a meaning that no case runs:";
  for (const std::string& name : checked.not_compared) text += " " + name;
  text += (checked.not_compared.empty() ? " none\n" : "\n") + algebra_text(algebra);
  return text;
}

}  // namespace opguard
