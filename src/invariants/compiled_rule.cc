// Texts of a rule become numbers once, so that a row is compared without looking at texts.
//
//   dtype is float32         column 12, values {5}
//   dtype is float8          no text is "float8": values {}, and no cell meets it
//   dtype is not float8      values {}, negated: each known cell meets it
//
// Counterexample: texts that grow while rows come. A value that was not there when the rule was
// compiled gets a number later, and the rule would not know it. So RowChecker compiles with texts
// that may grow.
#include "invariants/compiled_rule.h"

#include <algorithm>

namespace opguard {

namespace {

// `number`: a text -> its number, kNone for none. The rule's view and columns were looked at before
// (unknown_in()).
template <typename Number>
CompiledRule compiled(const Invariant& rule, const RuleView& view, Number number) {
  auto test_of = [&](const CellTest& test) {
    CompiledTest made{static_cast<size_t>(column_number(view, test.column)), {}, test.negated};
    for (const std::string& value : test.values)
      if (const uint32_t found = number(value); found != kNone) made.values.push_back(found);
    return made;
  };
  CompiledRule made;
  for (const CellTest& test : rule.when) made.when.push_back(test_of(test));
  made.ranged = rule.between.has_value();
  if (!made.ranged) made.then = test_of(rule.then);
  return made;
}

}  // namespace

bool CompiledTest::meets(std::span<const uint32_t> cells) const {
  if (cells[column] == kUnknown) return false;
  const bool among = std::find(values.begin(), values.end(), cells[column]) != values.end();
  return among != negated;
}

bool CompiledRule::meets(std::span<const uint32_t> cells) const {
  return std::all_of(when.begin(), when.end(),
                     [&](const CompiledTest& test) { return test.meets(cells); });
}

CompiledRule compile_rule(const Invariant& rule, const RuleView& view, const CellTexts& texts) {
  return compiled(rule, view, [&](const std::string& text) { return texts.find(text); });
}

CompiledRule compile_rule(const Invariant& rule, const RuleView& view, CellTexts& texts) {
  return compiled(rule, view, [&](const std::string& text) { return texts.number(text); });
}

int view_number(std::span<const RuleView> views, std::string_view name) {
  auto it =
      std::find_if(views.begin(), views.end(), [&](const RuleView& v) { return v.name == name; });
  return it == views.end() ? -1 : static_cast<int>(it - views.begin());
}

std::string unknown_in(const Invariant& rule, std::span<const RuleView> views) {
  const int number = view_number(views, rule.view);
  if (number < 0) return "view '" + rule.view + "'";
  const RuleView& view = views[number];
  for (const CellTest& test : rule.when)
    if (column_number(view, test.column) < 0) return "column '" + test.column + "'";
  if (!rule.between && column_number(view, rule.then.column) < 0)
    return "column '" + rule.then.column + "'";
  return "";
}

}  // namespace opguard
