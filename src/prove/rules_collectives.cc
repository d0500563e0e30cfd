// Each collective with what gloo's processes have moved: all ranks of a case in one simulation.
//
//   all_reduce by sum, ranks 2 0   out0 of rank 0 and of rank 2, each beside its process's numbers
//
// A name counts as compared where a case that runs it was compared whole. What gloo has not is
// told, and no other case stands in for it.
#include <set>

#include "prove/collectives.h"
#include "prove/evaluate.h"
#include "prove/rules.h"
#include "prove/simulation.h"

namespace opguard::proving {
namespace {

constexpr const char* kReductions[] = {"sum", "avg", "max", "min", "prod"};

std::string reduction_name(const std::string& how) { return "by " + how; }

// Each rank's inputs are unknowns of their own ("x of rank 2"), so that a mixed-up rank shows in
// the numbers.
RuleResult check_together(const std::string& folder, size_t number, const nlohmann::json& about,
                          std::set<std::string>& compared) {
  RuleResult result;
  result.name = about.at("name").get<std::string>();
  if (about.contains("lacking")) {
    result.lacking = about["lacking"].get<std::string>();
    return result;
  }
  if (about.contains("raised")) {
    result.wrong = "gloo: " + about["raised"].get<std::string>();
    return result;
  }
  std::vector<Trace> traces;
  Given values;
  for (size_t r = 0; r < about.at("world").get<size_t>(); ++r) {
    const std::string path =
        folder + "/collective-" + std::to_string(number) + "-rank-" + std::to_string(r) + ".json";
    const nlohmann::json file = read_json(path);
    if (file.contains("raised")) {
      result.wrong = file["raised"].get<std::string>();
      return result;
    }
    traces.push_back(read_trace(path));
    for (const auto& [name, numbers] : file.at("values").items())
      values[name + " of rank " + std::to_string(r)] = numbers.get<std::vector<double>>();
  }
  Terms terms;
  KnownSums known;
  std::vector<Rank> ranks;
  ranks.reserve(traces.size());
  for (const Trace& trace : traces) {
    Rank& rank = ranks.emplace_back(terms, trace, known, false);
    for (const auto& [name, tensor] : trace.inputs) {
      const std::string own = name + " of rank " + std::to_string(trace.rank);
      std::vector<Element> unknown;
      for (uint32_t i = 0; i < values.at(own).size(); ++i)
        unknown.push_back(terms.variable(own, i));
      rank.set(tensor, unknown);
    }
  }
  if (const std::optional<Stopped> stopped = run_together(terms, ranks)) {
    result.wrong = stopped->why;
    return result;
  }
  std::set<std::string> names;
  try {
    Point point(terms, values);
    for (Rank& rank : ranks) {
      const nlohmann::json& all = about.at("expected").at(rank.number());
      for (const auto& [name, tensor] : rank.trace().outputs) {
        const auto expected = all.at(name).get<std::vector<double>>();
        const Array found = rank.read(tensor);
        if (found.at.size() != expected.size()) {
          result.wrong = name + " has another size than torch's";
          return result;
        }
        for (size_t i = 0; i < expected.size(); ++i)
          compare_numbers(
              result, name + "[" + std::to_string(i) + "] of rank " + std::to_string(rank.number()),
              expected[i], point.value(found.at[i]), kRulesNear);
      }
      for (const Node& node : rank.trace().nodes) {
        if (!meets(node)) continue;
        names.insert(node.op.substr(0, node.op.rfind('.')));
        const Meeting m = meeting_of(node);
        if (reduces(m.kind)) names.insert(reduction_name(m.reduction));
      }
    }
  } catch (const Unprovable& e) {
    result.wrong = e.what();
  }
  if (result.wrong.empty() && result.elements > 0) compared.insert(names.begin(), names.end());
  return result;
}

}  // namespace

void check_collective_rules(const std::string& folder, RulesChecked& checked) {
  const nlohmann::json index = read_json(folder + "/rules.json");
  std::set<std::string> compared;
  for (size_t i = 0; i < index.at("collectives").size(); ++i)
    checked.collective_cases.push_back(
        check_together(folder, i, index["collectives"][i], compared));
  checked.collectives = collective_names();
  for (const char* how : kReductions) checked.collectives.push_back(reduction_name(how));
  for (const std::string& name : checked.collectives)
    if (!compared.contains(name)) checked.collectives_not_compared.push_back(name);
}

}  // namespace opguard::proving
