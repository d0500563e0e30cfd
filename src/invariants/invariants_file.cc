// Rules from JSON and to JSON, for people and for programs.
//
//   read      {"view": "parameter", "then": {"column": "has_grad", "is": true}}
//   rule      id, sentence and relation are made from it; tier structural, severity warning
//   written   with all fields, those of `evidence` too, in an order that is always the same
//
// What a person may get wrong is a fault at its line: an unknown field, an unknown severity, a rule
// that stands twice.
//
// Counterexample: a view or column that is not known here is no fault. Another version of the tool
// may know it.
//
// The cost: the whole text and its values are held, and at most kMostInvariants rules.
#include "invariants/invariants_file.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "invariants/compiled_rule.h"
#include "nlohmann/json.hpp"
#include "plan/json_text.h"

namespace opguard {

namespace {

using Kind = JsonValue::Kind;
using OrderedJson = nlohmann::ordered_json;

// A name that is not there leaves `out` as it was. False, and a fault, where it is there and means
// nothing.
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

// "yes" and "no" may be written as true and false.
bool read_cell(JsonText& in, const JsonValue& value, std::vector<std::string>& cells) {
  if (value.kind == Kind::boolean)
    cells.push_back(value.boolean ? "yes" : "no");
  else if (value.kind == Kind::string)
    cells.push_back(value.string);
  else
    in.fault(value, "expected a text, true or false");
  return !in.failed();
}

//   {"column": "dtype", "in": ["float32", "bfloat16"]}
//
// Of "in" and of "not" the value may be a list, of "is" never.
bool read_test(JsonText& in, const JsonValue& value, CellTest& test) {
  if (value.kind != Kind::object) {
    in.fault(value, "expected an object with a column and its value");
    return false;
  }
  in.only(value, {"column", "is", "in", "not"});
  in.read(value, "column", test.column);
  const JsonValue* cells = nullptr;
  for (const char* key : {"is", "in", "not"})
    if (const JsonValue* found = value.find(key)) {
      if (cells) in.fault(*found, "a column has one of 'is', 'in' and 'not'");
      cells = found;
      test.negated = key == std::string("not");
    }
  if (in.failed()) return false;
  if (!cells) {
    in.fault(value, "a column needs 'is', 'in' or 'not'");
    return false;
  }
  const bool may_be_several = !value.find("is");
  if (cells->kind != Kind::array || !may_be_several) return read_cell(in, *cells, test.values);
  if (cells->items.empty()) in.fault(*cells, "a column needs a value");
  for (const JsonValue& cell : cells->items)
    if (!read_cell(in, cell, test.values)) return false;
  return !in.failed();
}

bool read_range(JsonText& in, const JsonValue& range, Invariant& rule) {
  auto is_number = [](const JsonValue& value) {
    return value.kind == Kind::integer || value.kind == Kind::real;
  };
  if (range.kind != Kind::array || range.items.size() != 2 || !is_number(range.items[0]) ||
      !is_number(range.items[1]))
    in.fault(range, "a range is two numbers");
  // Asked in this way a NaN is refused too. Of an integer `real` is set as well.
  else if (!(range.items[0].real <= range.items[1].real))
    in.fault(range, "a range ends below its begin");
  else
    rule.between = {range.items[0].real, range.items[1].real};
  return !in.failed();
}

class InvariantsReader {
 public:
  InvariantsReader(JsonText& in, const std::string& text, std::span<const RuleView> views,
                   InvariantsFile& file)
      : in_(in), text_(text), views_(views), file_(file) {}

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
  // For people: nothing is decided by it, so a form that is not known is stepped over.
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
    if (value.find("when")) {
      const JsonValue* when = in_.member(value, "when", Kind::array);
      if (!when) return false;
      for (const JsonValue& item : when->items)
        if (!read_test(in_, item, rule.when.emplace_back())) return false;
    }
    const JsonValue* then = in_.member(value, "then", Kind::object);
    if (!then) return false;
    if (const JsonValue* range = then->find("between")) {
      in_.only(*then, {"between"});
      if (in_.failed() || !read_range(in_, *range, rule)) return false;
    } else if (!read_test(in_, *then, rule.then)) {
      return false;
    }
    const std::vector<std::pair<const char*, InvariantTier>> tiers = {
        {"structural", InvariantTier::structural},
        {"general", InvariantTier::general},
        {"program", InvariantTier::program},
        {"usual", InvariantTier::usual}};
    const std::vector<std::pair<const char*, InvariantSeverity>> severities = {
        {"error", InvariantSeverity::error},
        {"warning", InvariantSeverity::warning},
        {"note", InvariantSeverity::note}};
    if (!read_name(in_, value, "tier", tiers, rule.tier) ||
        !read_name(in_, value, "severity", severities, rule.severity))
      return false;
    if (const JsonValue* evidence = value.find("evidence")) read_evidence(*evidence, rule);
    // What is given is not used; keep() makes it. Two that are equal are a slip of who copied a
    // rule.
    if (const JsonValue* id = value.find("id")) {
      std::string given;
      in_.read(value, "id", given);
      if (!in_.failed() && !given_ids_.insert(given).second)
        in_.fault(*id, "two rules have the id '" + given + "'");
    }
    return !in_.failed() && keep(value, std::move(rule));
  }

  void read_evidence(const JsonValue& evidence, Invariant& rule) {
    RuleEvidence& into = rule.evidence;
    in_.read(evidence, "programs", into.programs);
    in_.read(evidence, "runs", into.runs);
    in_.read(evidence, "rows", into.rows);
    in_.read(evidence, "counterexamples_outside", into.against);
    if (const JsonValue* held_out = evidence.find("held_out")) {
      in_.read(*held_out, "programs", into.held_out);
      in_.read(*held_out, "violated", into.breaking);
    }
  }

  // Of an older or newer version of the tool: a rule that means nothing here is left out.
  bool keep(const JsonValue& at, Invariant rule) {
    if (const std::string unknown = unknown_in(rule, views_); !unknown.empty()) {
      file_.notes.push_back("a rule was left out: unknown " + unknown +
                            (rule.says.empty() ? "" : " (" + rule.says + ")"));
      // The piece of text that it was read from, since a rule does not keep what is not known here.
      // As one line of ASCII: merging sorts such texts.
      file_.unread.push_back(
          OrderedJson::parse(text_.substr(at.begin, at.end - at.begin)).dump(-1, ' ', true));
      return true;
    }
    const RuleView* view = &views_[view_number(views_, rule.view)];
    rule.id = invariant_id(rule);
    if (!rule.between)
      rule.relation = view->columns[column_number(*view, rule.then.column)].relation;
    else
      rule.relation = "range";
    if (rule.says.empty()) rule.says = invariant_words(rule, *view);
    // Reports put a sentence into a line of their own, without a full stop.
    while (rule.says.ends_with('.')) rule.says.pop_back();
    if (!ids_.insert(rule.id).second) {
      in_.fault(at, "the same rule twice: " + rule.id);
      return false;
    }
    file_.invariants.push_back(std::move(rule));
    return true;
  }

  JsonText& in_;
  const std::string& text_;
  std::span<const RuleView> views_;
  InvariantsFile& file_;
  std::set<std::string> ids_, given_ids_;
};

// One value is written as "is" or "not", several as a list: what read_test() reads.
OrderedJson test_json(const CellTest& test) {
  OrderedJson json = {{"column", test.column}};
  const bool one = test.values.size() == 1;
  const char* key = test.negated ? "not" : one ? "is" : "in";
  json[key] = one ? OrderedJson(test.values[0]) : OrderedJson(test.values);
  return json;
}

OrderedJson evidence_json(const RuleEvidence& evidence) {
  const double risk = risk_95(evidence.held_out, evidence.breaking);
  return {{"programs", evidence.programs},
          {"runs", evidence.runs},
          {"rows", evidence.rows},
          {"counterexamples_outside", evidence.against},
          {"held_out", {{"programs", evidence.held_out}, {"violated", evidence.breaking}}},
          {"risk_95", std::round(risk * 1e4) / 1e4}};
}

}  // namespace

bool parse_invariants(const std::string& path, const std::string& text,
                      std::span<const RuleView> views, InvariantsFile& file, Diagnostics& diags) {
  JsonText in(path, text, diags);
  JsonValue root;
  return in.parse(root) && InvariantsReader(in, text, views, file).read(root);
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
    one["evidence"] = evidence_json(rule.evidence);
    one["muted"] = rule.muted.empty() ? OrderedJson(nullptr) : OrderedJson(rule.muted);
    json["invariants"].push_back(std::move(one));
  }
  for (const std::string& rule : file.unread)
    json["invariants"].push_back(OrderedJson::parse(rule));
  // Names of a program may be no UTF-8: they are replaced, and nothing is thrown.
  return json.dump(1, ' ', false, OrderedJson::error_handler_t::replace) + "\n";
}

}  // namespace opguard
