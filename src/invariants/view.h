// invariants/view.h: the tables in which invariants are looked for.
//
//   view parameter      a row for each parameter at each optimizer step:
//                       requires_grad=yes held=yes has_grad=yes changed=yes dtype=float32 ...
//   rule                with requires_grad=yes, held=yes: has_grad=yes
//
// A view is a description; views/ makes its rows from a log. All cells are categories: a number
// becomes one by a question, "is it finite", "is it that of the step before".
//
// Counterexample: "loss" itself is no column. "loss is finite" is.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace opguard {

struct ViewColumn {
  std::string_view name;
  // A rule may say that it has a value; it may be asked before (a condition).
  bool concluded = false, condition = true;
  // What it means is known: as a condition it needs counterexamples of one program, not of two.
  bool semantic = false;
  // Its values are names of one program: user classes, functions, parameters. Tier `program` only.
  bool names = false;
  // Columns that say nearly the same: none is a condition for another of its family. "" for none.
  std::string_view family = {};
  // What kind of invariant it is: rank_equal, coverage, contain, dtype, sequence, distinct, output,
  // checkpoint, argument, shape, alias, mode, finite, range, told. Findings are grouped by it
  // (grouping.cc).
  std::string_view relation = {};
};

struct RuleView {
  std::string_view name;     // "parameter"
  std::string_view subject;  // "parameter at an optimizer step", behind "every"
  std::span<const ViewColumn> columns;
  // The column that every rule's condition must ask: a rule of a call must say which call. -1:
  // none.
  int anchor = -1;
  // It compares ranks: one program is enough as a counterexample's witness.
  bool across_ranks = false;
};

// All of them, in a fixed order; their numbers are the positions. Names never change their meaning.
std::span<const RuleView> views();
int view_number(std::string_view name);                          // -1: unknown
int column_number(const RuleView& view, std::string_view name);  // -1: unknown

}  // namespace opguard
