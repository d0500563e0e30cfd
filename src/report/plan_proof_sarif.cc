// A refutation is one result, an error at the statement that made the wrong sum. How that came
// there and how it went on is a code flow: fed, made, passed. What could not be told is a warning.
//
//   refuted by numbers    rule "refuted", at `made`, else at `passed`
//   a deadlock            rule "stuck", at the first rank that waits
//   no rank has a part    rule "incomplete", at the plan's first line
//   unknown               rule "unknown", at the operator without a meaning
//   proved                no result
#include "nlohmann/json.hpp"
#include "report/plan_proof.h"
#include "report/plan_proof_words.h"
#include "report/sarif_parts.h"
#include "support/text.h"

namespace opguard {
namespace {

using Json = nlohmann::ordered_json;
using proving::Statement;

struct ProofRule {
  const char *id, *level, *text;
};
constexpr ProofRule kProofRules[] = {
    {"refuted", "error", "A rank's output is not what the model computes."},
    {"stuck", "error", "The ranks cannot come to the end of the step."},
    {"incomplete", "error", "A part of the model's outputs is written by no rank."},
    {"unknown", "warning", "Whether the plan computes what its model computes is not known."},
};

std::string message_of(const proving::Result& result) {
  if (!result.difference) return proof_headline(result) + ".";
  const proving::Difference& d = *result.difference;
  std::string text = proof_headline(result) + ": at " + proof_position(d.position) +
                     " the model has " + proof_number(d.logical) + ", the plan " +
                     proof_number(d.plan);
  if (d.factor) text += ", a factor of " + proof_number(*d.factor) + " whatever the input";
  return text + ". " + proof_extent(result) + ".";
}

Json proof_result_json(const PlanProof& proof) {
  const proving::Result& result = proof.result;
  const size_t rule = result.verdict == proving::Verdict::unknown ? 3
                      : result.difference                         ? 0
                      : result.at                                 ? 1
                                                                  : 2;
  Json json = {{"ruleId", kProofRules[rule].id},
               {"ruleIndex", rule},
               {"level", kProofRules[rule].level},
               {"message", {{"text", shown(message_of(result))}}}};
  const auto place = [&](const Statement& s, const std::string& what) {
    return sarif_location(proof_location(s, proof.tree), what + ": " + proof_operator(s));
  };
  std::vector<std::pair<const char*, const Statement*>> way;
  if (result.difference) {
    const proving::Difference& d = *result.difference;
    const auto add = [&](const char* what, const Statement* s) {
      if (s != nullptr && s->line > 0) way.emplace_back(what, s);
    };
    // The flow runs forwards: what fed the sum most tellingly comes last, next to its maker.
    for (size_t i = d.fed.size(); i-- > 0;) add("what it read came from here", &d.fed[i]);
    add("the wrong sum was made here", d.made ? &*d.made : nullptr);
    if (!d.made || passed_elsewhere(d))
      add("it was last written here", d.passed ? &*d.passed : nullptr);
    if (used_elsewhere(d)) add("it was used here first", &*d.used);
    const Statement* main = d.made ? &*d.made : d.passed ? &*d.passed : nullptr;
    for (const auto& [what, statement] : way)
      json[statement == main ? "locations" : "relatedLocations"].push_back(place(*statement, what));
  } else if (result.at && result.at->line > 0) {
    json["locations"].push_back(place(*result.at, "here"));
  }
  // A review shows no result without a place: the plan's first line stands for it.
  if (!json.contains("locations"))
    json["locations"].push_back(sarif_location(
        proof_location(Statement{0, "", proof.captured.plan, "", 1, false}, proof.tree), ""));
  // A flow of one step would say the result's own place again.
  if (way.size() > 1) {
    Json& steps = json["codeFlows"][0]["threadFlows"][0]["locations"] = Json::array();
    for (const auto& [what, statement] : way)
      steps.push_back({{"location", place(*statement, what)}});
  }
  if (result.difference) {
    const proving::Difference& d = *result.difference;
    json["properties"] = {{"output", shown(d.output)}, {"rank", d.rank}, {"position", d.position},
                          {"logical", d.logical},      {"plan", d.plan}, {"differing", d.differing},
                          {"elements", d.elements}};
    if (d.factor) json["properties"]["factor"] = *d.factor;
  }
  return json;
}

}  // namespace

std::string format_plan_proof_sarif(const PlanProof& proof) {
  Json rules = Json::array(), results = Json::array();
  for (const ProofRule& rule : kProofRules)
    rules.push_back({{"id", rule.id},
                     {"shortDescription", {{"text", rule.text}}},
                     {"defaultConfiguration", {{"level", rule.level}}}});
  if (proof.result.verdict != proving::Verdict::proved) results.push_back(proof_result_json(proof));
  Json run = sarif_run(proof.identity, proof.tree, std::move(rules), std::move(results));
  run["properties"] = {{"verdict", proof_verdict(proof.result.verdict)},
                       {"why", shown(proof_headline(proof.result))}};
  return sarif_text(std::move(run));
}

}  // namespace opguard
