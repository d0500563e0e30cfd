// What `opguard prove` has found, on the terminal and as JSON.
//
//   refuted: grad:x of rank 0 is not the model's
//     at [0, 3]: the model has 1.5, the plan 3, a factor of 2 whatever the input
//     8 of 8 elements differ, and 1 other output
//     made at   mlp.py:40, in step: mm of the backward pass, rank 0
//         dx = dy @ self.weight
//       called from train.py:12, in main
//     passed at mlp.py:52, in step: all_reduce of the backward pass, rank 0
//     2 ranks, 68 operators for the model's 31; 82 elements of 10 outputs; 0.0 s
//
// "made" is where the wrong sum came to be, "passed" who wrote it last, "used" who read it first.
// One that stands on the maker's own line is not told again.
//
// A proof is told with all that it rests on. Counterexample: "proved" alone. What was granted with
// --opaque or --approx would look as if it had been shown.
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

json thin_json(const std::vector<proving::ThinInput>& inputs) {
  json found = json::array();
  for (const proving::ThinInput& thin : inputs)
    found.push_back({{"name", thin.name}, {"dimensions", thin.dimensions}, {"hides", thin.hides}});
  return found;
}

// Line `line`, from 1, without its indent; "" where the file has no such line, or is gone.
std::string line_of(const std::string& path, int64_t line) {
  std::ifstream file(path);
  std::string text;
  for (int64_t i = 0; i < line; ++i)
    if (!std::getline(file, text)) return "";
  const size_t begin = text.find_first_not_of(" \t");
  return begin == std::string::npos ? "" : text.substr(begin);
}

// Where it stands, what it is, its source line. Its callers follow, but not where `told`, which is
// printed above, has the same.
std::string statement_text(const char* what, const Statement& s, const Statement* told = nullptr) {
  std::string text = std::string("  ") + what + " " + s.file + ":" + std::to_string(s.line);
  if (!s.function.empty()) text += ", in " + s.function;
  text += ": " + proof_operator(s) + "\n";
  const std::string source = line_of(s.file, s.line);
  if (!source.empty()) text += "      " + source + "\n";
  if (told == nullptr || proof_callers(*told) != proof_callers(s))
    for (const std::string& caller : proof_callers(s)) text += "    called from " + caller + "\n";
  return text;
}

json statement_json(const Statement& s) {
  json found = {{"rank", s.rank}, {"operator", s.op},       {"file", s.file},
                {"line", s.line}, {"function", s.function}, {"backward", s.backward}};
  for (const proving::Frame& f : s.callers)
    found["callers"].push_back({{"file", f.file}, {"line", f.line}, {"function", f.function}});
  return found;
}

// Of a difference in numbers. A deadlock has none, and is told by `why` and `at`.
std::string refutation_text(const proving::Result& result) {
  const proving::Difference& d = *result.difference;
  std::string text = "refuted: " + proof_headline(result) + "\n  at " + proof_position(d.position) +
                     ": the model has " + proof_number(d.logical) + ", the plan " +
                     proof_number(d.plan);
  if (d.factor) text += ", a factor of " + proof_number(*d.factor) + " whatever the input";
  text += "\n  " + proof_extent(result) + "\n";
  if (d.made) text += statement_text("made at  ", *d.made);
  for (const Statement& s : d.fed)
    text += statement_text("fed by   ", s, d.made ? &*d.made : nullptr);
  if (passed_elsewhere(d)) text += statement_text("passed at", *d.passed, &*d.made);
  if (used_elsewhere(d)) text += statement_text("used at  ", *d.used, &*d.made);
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
  if (result.verdict != proving::Verdict::proved)
    for (const std::string& line : proof_grants(result)) text += "  " + line + "\n";
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
      {"thin", thin_json(result.thin)},
      {"not_compared", result.not_compared}};
  if (const auto granted = proof_grants(result); !granted.empty()) found["granted"] = granted;
  for (const Statement& s : result.waiting) found["waiting"].push_back(statement_json(s));
  for (const Statement& s : result.relies_on_sends)
    found["relies_on_sends"].push_back(statement_json(s));
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
  for (const Statement& s : d.fed) difference["fed"].push_back(statement_json(s));
  if (d.passed) difference["passed"] = statement_json(*d.passed);
  if (d.used) difference["used"] = statement_json(*d.used);
  return found;
}

// What Z3 said of the rules that terms are rewritten by. A refuted one prints its script, so that
// it can be run again.
static std::string algebra_text(const proving::AlgebraProof& algebra) {
  if (algebra.solver.empty())
    return "algebra: not proved, since there is no libz3 here (Debian: libz3-4)\n";
  const auto of = [](const proving::AlgebraProof::Count& count, const char* what) {
    return std::to_string(count.proved) + " of " + counted(count.asked, what);
  };
  std::string text;
  for (const proving::AlgebraQuestion& q : algebra.refuted)
    text += "WRONG algebra: " + q.rule + ": Z3 has numbers where it does not hold\n" + q.script;
  for (const proving::AlgebraQuestion& q : algebra.undecided)
    text += "algebra, not decided: " + q.rule + "\n";
  text += "algebra, proved by Z3 " + algebra.solver + ": " +
          std::to_string(algebra.identities.proved) + " of " +
          std::to_string(algebra.identities.asked) + " identities, " + of(algebra.calls, "call") +
          " on random terms:";
  for (const auto& [rule, count] : algebra.rules)
    text += " " + rule + " " + std::to_string(count.proved);
  text += "\nof exp and log it is given:";
  for (const char* law : proving::kLaws)
    text += std::string(law == proving::kLaws[0] ? " " : ", ") + law;
  return text + "\n";
}

// "WRONG name: why" of those that differ, and a line of what all of them say.
static std::string cases_text(const std::vector<proving::RuleResult>& cases,
                              const std::string& what) {
  std::string text, lacking;
  size_t right = 0, compared = 0;
  uint64_t elements = 0;
  double error = 0;
  for (const proving::RuleResult& r : cases) {
    elements += r.elements;
    if (!r.lacking.empty()) {
      lacking += "not compared, " + r.name + ": gloo: " + r.lacking + "\n";
      continue;
    }
    ++compared;
    if (r.wrong.empty()) {
      ++right;
      error = std::max(error, r.error);
    } else {
      text += "WRONG " + r.name + ": " + r.wrong + "\n";
    }
  }
  char largest[40];
  std::snprintf(largest, sizeof(largest), "%.1e", error);
  return text + counted(right, "case") + " of " + std::to_string(compared) + what + ", " +
         counted(elements, "number") + ", at most " + largest + " apart\n" + lacking;
}

template <typename Names>
static std::string names_text(const std::string& title, const Names& names) {
  std::string text = title + ":";
  for (const std::string& name : names) text += " " + name;
  return text + (names.empty() ? " none\n" : "\n");
}

std::string rules_text(const proving::RulesChecked& checked) {
  const auto named = [](size_t count, const char* noun) {
    return counted(count, noun) + " with a meaning";
  };
  return cases_text(checked.cases, " as torch computes them") +
         names_text(named(checked.names.size(), "operator"), checked.names) +
         names_text("operators with a meaning that no case runs", checked.not_compared) +
         cases_text(checked.collective_cases, " of collectives as gloo moves them") +
         names_text(named(checked.collectives.size(), "collective"), checked.collectives) +
         names_text("collectives with a meaning that no case compares",
                    checked.collectives_not_compared) +
         algebra_text(checked.algebra);
}

}  // namespace opguard
