#include "invariants/invariants_file.h"

#include <algorithm>
#include <map>
#include <set>

#include "nlohmann/json.hpp"
#include "plan/json_text.h"

namespace opguard {

namespace {

using Kind = JsonValue::Kind;
using OrderedJson = nlohmann::ordered_json;

template <typename Enum>
bool read_name(JsonText& in, const JsonValue& object, const char* key,
               const std::vector<std::pair<const char*, Enum>>& names, Enum& out) {
  const JsonValue* value = object.find(key);
  if (!value) return true;
  for (const auto& [name, meaning] : names)
    if (value->kind == Kind::string && value->string == name) {
      out = meaning;
      return true;
    }
  in.fault(*value, std::string("unknown ") + key);
  return false;
}

bool read_test(JsonText& in, const JsonValue& value, CellTest& test) {
  if (value.kind != Kind::object) {
    in.fault(value, "expected an object with a column and its value");
    return false;
  }
  in.only(value, {"column", "is", "in"});
  in.read(value, "column", test.column);
  if (value.find("in")) {
    in.read(value, "in", test.values);
  } else {
    std::string is;
    in.read(value, "is", is);
    test.values = {is};
  }
  if (!in.failed() && test.values.empty()) in.fault(value, "a column needs a value");
  return !in.failed();
}

class InvariantsReader {
 public:
  InvariantsReader(JsonText& in, std::span<const View> views, InvariantsFile& file)
      : in_(in), views_(views), file_(file) {}

  bool read(const JsonValue& root) {
    if (!in_.check_version(root, "opguard_invariants", kInvariantsVersion, "invariants"))
      return false;
    in_.only(root, {"opguard_invariants", "made", "invariants"});
    if (const JsonValue* made = root.find("made")) read_made(*made);
    const JsonValue* rules = in_.member(root, "invariants", Kind::array);
    if (!rules) return false;
    if (rules->items.size() > kMostInvariants) {
      in_.fault(*rules, "more than 100,000 rules");
      return false;
    }
    for (const JsonValue& rule : rules->items)
      if (!read_rule(rule)) return false;
    return !in_.failed();
  }

 private:
  void read_made(const JsonValue& made) {
    if (made.find("tool")) in_.read(made, "tool", file_.tool);
    const JsonValue* programs = made.find("programs");
    if (!programs || programs->kind != Kind::array) return;
    for (const JsonValue& program : programs->items) {
      std::string name;
      uint32_t runs = 0;
      in_.read(program, "name", name);
      in_.read(program, "runs", runs);
      file_.programs.push_back({name, runs});
    }
  }

  bool read_rule(const JsonValue& value) {
    if (value.kind != Kind::object) {
      in_.fault(value, "expected a rule");
      return false;
    }
    in_.only(value, {"id", "says", "view", "when", "then", "tier", "severity", "relation",
                     "evidence", "muted", "why"});
    Invariant rule;
    in_.read(value, "view", rule.view);
    for (const char* key : {"says", "why"})
      if (value.find(key)) in_.read(value, key, rule.says);
    if (value.find("muted") && value.find("muted")->kind != Kind::null)
      in_.read(value, "muted", rule.muted);
    if (const JsonValue* when = value.find("when"))
      for (const JsonValue& item : when->items)
        if (!read_test(in_, item, rule.when.emplace_back())) return false;
    const JsonValue* then = in_.member(value, "then", Kind::object);
    if (!then) return false;
    if (const JsonValue* range = then->find("between")) {
      if (range->items.size() != 2) {
        in_.fault(*range, "expected two numbers");
        return false;
      }
      rule.between = {range->items[0].real, range->items[1].real};
    } else if (!read_test(in_, *then, rule.then)) {
      return false;
    }
    const std::vector<std::pair<const char*, InvariantTier>> tiers = {
        {"structural", InvariantTier::structural},
        {"general", InvariantTier::general},
        {"program", InvariantTier::program}};
    const std::vector<std::pair<const char*, InvariantSeverity>> severities = {
        {"error", InvariantSeverity::error},
        {"warning", InvariantSeverity::warning},
        {"note", InvariantSeverity::note}};
    if (!read_name(in_, value, "tier", tiers, rule.tier) ||
        !read_name(in_, value, "severity", severities, rule.severity))
      return false;
    if (const JsonValue* evidence = value.find("evidence")) {
      in_.read(*evidence, "programs", rule.evidence.programs);
      in_.read(*evidence, "runs", rule.evidence.runs);
      in_.read(*evidence, "rows", rule.evidence.rows);
      in_.read(*evidence, "counterexamples_outside", rule.evidence.against);
      if (evidence->find("breaking")) in_.read(*evidence, "breaking", rule.evidence.breaking);
    }
    if (in_.failed()) return false;
    return keep(value, std::move(rule));
  }

  // Of an older or newer version of the tool: a rule that means nothing here is left out.
  bool keep(const JsonValue& at, Invariant rule) {
    const auto view = std::find_if(views_.begin(), views_.end(),
                                   [&](const View& v) { return v.name == rule.view; });
    std::string unknown;
    if (view == views_.end()) {
      unknown = "view '" + rule.view + "'";
    } else {
      for (const CellTest& test : rule.when)
        if (column_number(*view, test.column) < 0) unknown = "column '" + test.column + "'";
      if (!rule.between && column_number(*view, rule.then.column) < 0)
        unknown = "column '" + rule.then.column + "'";
    }
    if (!unknown.empty()) {
      file_.notes.push_back("a rule was left out: unknown " + unknown);
      return true;
    }
    rule.id = invariant_id(rule);
    if (!rule.between)
      rule.relation = view->columns[column_number(*view, rule.then.column)].relation;
    else
      rule.relation = "range";
    if (rule.says.empty()) rule.says = invariant_words(rule, *view);
    while (rule.says.ends_with('.')) rule.says.pop_back();
    if (!ids_.insert(rule.id).second) {
      in_.fault(at, "the same rule twice: " + rule.id);
      return false;
    }
    file_.invariants.push_back(std::move(rule));
    return true;
  }

  JsonText& in_;
  std::span<const View> views_;
  InvariantsFile& file_;
  std::set<std::string> ids_;
};

OrderedJson test_json(const CellTest& test) {
  OrderedJson json = {{"column", test.column}};
  if (test.values.size() == 1)
    json["is"] = test.values[0];
  else
    json["in"] = test.values;
  return json;
}

}  // namespace

bool parse_invariants(const std::string& path, const std::string& text, std::span<const View> views,
                      InvariantsFile& file, Diagnostics& diags) {
  JsonText in(path, text, diags);
  JsonValue root;
  return in.parse(root) && InvariantsReader(in, views, file).read(root);
}

std::string format_invariants(const InvariantsFile& file) {
  OrderedJson json = {{"opguard_invariants", kInvariantsVersion}};
  json["made"] = {{"tool", file.tool}, {"programs", OrderedJson::array()}};
  for (const auto& [name, runs] : file.programs)
    json["made"]["programs"].push_back({{"name", name}, {"runs", runs}});
  json["invariants"] = OrderedJson::array();
  for (const Invariant& rule : file.invariants) {
    OrderedJson one = {{"id", rule.id}, {"says", rule.says}, {"view", rule.view}};
    one["when"] = OrderedJson::array();
    for (const CellTest& test : rule.when) one["when"].push_back(test_json(test));
    if (rule.between)
      one["then"] = {{"between", {rule.between->first, rule.between->second}}};
    else
      one["then"] = test_json(rule.then);
    one["tier"] = tier_name(rule.tier);
    one["severity"] = severity_name(rule.severity);
    one["relation"] = rule.relation;
    one["evidence"] = {{"programs", rule.evidence.programs},
                       {"runs", rule.evidence.runs},
                       {"rows", rule.evidence.rows},
                       {"counterexamples_outside", rule.evidence.against},
                       {"breaking", rule.evidence.breaking}};
    one["muted"] = rule.muted.empty() ? OrderedJson(nullptr) : OrderedJson(rule.muted);
    json["invariants"].push_back(std::move(one));
  }
  return json.dump(1, ' ', false, OrderedJson::error_handler_t::replace) + "\n";
}

InvariantsFile merge_invariants(const InvariantsFile& a, const InvariantsFile& b) {
  InvariantsFile merged;
  merged.tool = a.tool.empty() ? b.tool : a.tool;
  std::map<std::string, uint32_t> programs;
  for (const auto* file : {&a, &b})
    for (const auto& [name, runs] : file->programs) programs[name] = std::max(programs[name], runs);
  merged.programs.assign(programs.begin(), programs.end());
  std::map<std::string, Invariant> rules;
  for (const auto* file : {&a, &b})
    for (const Invariant& rule : file->invariants) {
      auto [at, fresh] = rules.try_emplace(rule.id, rule);
      if (fresh) continue;
      const std::string muted = at->second.muted.empty() ? rule.muted : at->second.muted;
      if (rule.evidence.programs > at->second.evidence.programs) at->second = rule;
      at->second.muted = muted;
    }
  for (auto& [id, rule] : rules) merged.invariants.push_back(std::move(rule));
  return merged;
}

const Invariant* find_invariant(const InvariantsFile& file, const std::string& id) {
  const Invariant* found = nullptr;
  for (const Invariant& rule : file.invariants) {
    if (rule.id == id) return &rule;
    if (!id.empty() && rule.id.starts_with(id)) {
      if (found) return nullptr;
      found = &rule;
    }
  }
  return found;
}

}  // namespace opguard
