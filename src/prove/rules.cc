#include "prove/rules.h"

#include <algorithm>
#include <cmath>

#include "prove/evaluate.h"
#include "prove/operators.h"

namespace opguard::proving {
namespace {

// "mul" of mul_, _foreach_mul and _foreach_mul_: one meaning, compared by any of them.
std::string base_name(std::string name) {
  if (name.starts_with("_foreach_")) name = name.substr(9);
  if (name.ends_with("_") && !name.starts_with("_")) name.pop_back();
  return name;
}

// Run as a logical model, so that sums get names as they do in a proof. Views do not count as
// compared, and neither do nodes whose values the trace has.
RuleResult check_case(const std::string& path, std::set<std::string>& compared) {
  const nlohmann::json file = read_json(path);
  const Trace trace = read_trace(path);
  RuleResult result;
  result.name = file.at("name").get<std::string>();
  const Given values = file.at("values").get<Given>();
  const double near = file.value("near", kRulesNear);
  Terms terms;
  KnownSums known;
  Rank model(terms, trace, known, true);
  for (const auto& [name, tensor] : trace.inputs) {
    std::vector<Element> unknown;
    const auto& sizes = file.at("tokens");
    for (uint32_t i = 0; i < values.at(name).size(); ++i)
      unknown.push_back(sizes.contains(name) ? terms.token(name, i, sizes[name].get<uint32_t>())
                                             : terms.variable(name, i));
    model.set(tensor, unknown);
  }
  try {
    for (; !model.done(); model.advance()) {
      const Node& node = model.node();
      apply(model);
      if (node.known || node.view) continue;
      compared.insert(base_name(node.name));
      compared.insert(base_name(node.name) + "." + node.overload);
    }
    Point point(terms, values);
    for (const auto& [name, tensor] : trace.outputs) {
      const auto expected = file.at("expected").at(name).get<std::vector<double>>();
      const Array found = model.read(tensor);
      for (size_t i = 0; i < expected.size(); ++i) {
        const double value = point.value(found.at.at(i));
        compare_numbers(result, name + "[" + std::to_string(i) + "]", expected[i], value, near);
      }
    }
  } catch (const Unprovable& e) {
    result.wrong = e.what();
  }
  return result;
}

}  // namespace

void compare_numbers(RuleResult& result, const std::string& where, double torchs, double ours,
                     double near) {
  const double error = std::fabs(ours - torchs) / std::max(1.0, std::fabs(torchs));
  ++result.elements;
  if (!(error <= result.error)) result.error = error;
  if (!(error <= near) && result.wrong.empty())
    result.wrong =
        where + ": torch has " + std::to_string(torchs) + ", the meaning " + std::to_string(ours);
}

// rules.json says how many cases there are; each is a file of its own.
RulesChecked check_rules(const std::string& folder) {
  RulesChecked checked;
  const nlohmann::json index = read_json(folder + "/rules.json");
  for (size_t i = 0; i < index.at("rules").size(); ++i)
    checked.cases.push_back(
        check_case(folder + "/rule-" + std::to_string(i) + ".json", checked.compared));
  for (const std::string& name : operator_names()) {
    checked.names.insert(name.substr(0, name.find('.')));
    if (!checked.compared.contains(name)) checked.not_compared.push_back(name);
  }
  check_collective_rules(folder, checked);
  return checked;
}

}  // namespace opguard::proving
