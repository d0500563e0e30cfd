// Calls written by hand: which of them is named in place of an operator.
#include "align/judge/callers.h"

#include <gtest/gtest.h>

#include "align/builder.h"

namespace opguard::test {
namespace {

using Recording = opguard::Run;

Location at(const std::string& function, uint32_t line, const std::string& text,
            const std::string& block = "") {
  Location place{"", "m.py", "/m.py", line, 4, line, 40, text, "f", function};
  place.block = block;
  return place;
}

FunctionCall call(const std::string& callee, const Location& place,
                  std::vector<CallArgument> arguments = {}) {
  return {{"", "m.py", callee}, place, std::move(arguments)};
}

// One operator at `place`.
Recording run_with(const std::string& boundary, const Location& place, Calls calls) {
  LogBuilder log;
  log.add({.boundary = "m.other:1", .slots = {in(1), out(2)}});
  if (!boundary.empty()) log.add({.boundary = boundary, .slots = {in(2), out(3)}});
  log.log().locations["m.other:1"] = at("mlp", 9, "gate(x)");
  if (!boundary.empty()) log.log().locations[boundary] = place;
  Recording run = run_of({log.log()});
  for (const FunctionCall& each : calls.all) {
    calls.expressions[caller(each.at)].insert(expression_hash(each.at.text));
    calls.expressions[each.callee];
  }
  run.calls = std::move(calls);
  return run;
}

Pivot pivot_of(PivotKind kind, bool in_a, bool in_b) {
  Pivot pivot;
  pivot.kind = kind;
  if (in_a) pivot.a = {0, 1};
  if (in_b) pivot.b = {0, 1};
  return pivot;
}

uint32_t line(const Pivot& pivot, int side) {
  return pivot.call[side] ? pivot.call[side]->line : 0;
}

Pivot name_call(const Recording& a, const Recording& b, const Pivot& pivot) {
  return name_calls(a, b, {pivot}).front();
}

const Location kSilu = at("silu", 30, "F.silu(x)");

TEST(NameCall, OneThatOnlyOneRunMakes) {
  Calls a, b;
  a.all = {call("mlp", at("<module>", 50, "mlp(x)")), call("silu", at("mlp", 10, "silu(gate(x))"))};
  b.all = {call("mlp", at("<module>", 50, "mlp(x)"))};
  const Recording x = run_with("m.silu:2", kSilu, a), y = run_with("", {}, b);
  const Pivot named = name_call(x, y, pivot_of(PivotKind::structure, true, false));
  EXPECT_EQ(line(named, 0), 10u);
  EXPECT_FALSE(named.call[1]);
  EXPECT_TRUE(says(named.why, {.kind = ReasonKind::only_call, .side = 0}));
}

// Both runs call the function: what differs is inside.
TEST(NameCall, NotOneThatBothMake) {
  Calls both;
  both.all = {call("silu", at("mlp", 10, "silu(gate(x))"))};
  const Recording x = run_with("m.silu:2", kSilu, both), y = run_with("", {}, both);
  EXPECT_FALSE(name_call(x, y, pivot_of(PivotKind::structure, true, false)).call[0]);
}

// A helper was taken out around the call: the function runs in both, what differs is inside.
TEST(NameCall, NotOneWhereTheOtherRunComesThroughAnotherFunction) {
  Calls a, b;
  a.all = {call("mlp", at("<module>", 50, "mlp(x)")), call("silu", at("mlp", 10, "silu(x)"))};
  b.all = {call("mlp", at("<module>", 50, "mlp(x)")), call("_act", at("mlp", 10, "_act(x)")),
           call("silu", at("_act", 60, "silu(x)"))};
  const Recording x = run_with("", {}, a), y = run_with("m.silu:2", kSilu, b);
  EXPECT_FALSE(name_call(x, y, pivot_of(PivotKind::structure, false, true)).call[1]);
}

// No operator ran below the call in the other run, but the call stands there.
TEST(NameCall, NotOneThatStandsInBothTexts) {
  Calls a, b;
  a.all = {call("mlp", at("<module>", 50, "mlp(x)")), call("silu", at("mlp", 10, "silu(gate(x))"))};
  b.all = {call("mlp", at("<module>", 50, "mlp(x)"))};
  const Recording x = run_with("m.silu:2", kSilu, a);
  Recording y = run_with("", {}, b);
  y.calls.expressions[{"", "m.py", "mlp"}].insert(expression_hash("silu(gate(x))"));
  EXPECT_FALSE(name_call(x, y, pivot_of(PivotKind::structure, true, false)).call[0]);
  // With other arguments, written anew by a refactoring.
  y.calls.expressions[{"", "m.py", "mlp"}] = {expression_hash("silu(h)"), called_hash("f")};
  EXPECT_FALSE(name_call(x, y, pivot_of(PivotKind::structure, true, false)).call[0]);
  // Another function is called there.
  y.calls.expressions[{"", "m.py", "mlp"}] = {expression_hash("gelu(h)"), called_hash("gelu")};
  EXPECT_TRUE(name_call(x, y, pivot_of(PivotKind::structure, true, false)).call[0]);
  // Nothing is known of the caller there.
  y.calls.expressions.erase({"", "m.py", "mlp"});
  EXPECT_FALSE(name_call(x, y, pivot_of(PivotKind::structure, true, false)).call[0]);
}

// Two places that call it, both gone: which of them ran first is not known.
TEST(NameCall, NotOneOfSeveral) {
  Calls a, b;
  a.all = {call("silu", at("mlp", 10, "silu(gate(x))")), call("silu", at("head", 20, "silu(y)"))};
  b.all = {call("mlp", at("<module>", 50, "mlp(x)")), call("head", at("<module>", 51, "head(x)"))};
  const Recording x = run_with("m.silu:2", kSilu, a), y = run_with("", {}, b);
  EXPECT_FALSE(name_call(x, y, pivot_of(PivotKind::structure, true, false)).call[0]);
}

// The function's own caller is new as well: out to where both runs were.
TEST(NameCall, TheOutermostThatOnlyOneRunMakes) {
  Calls a, b;
  a.all = {call("mlp", at("<module>", 50, "mlp(x)")), call("act", at("mlp", 10, "act(gate(x))")),
           call("silu", at("act", 25, "silu(x)"))};
  b.all = {call("mlp", at("<module>", 50, "mlp(x)"))};
  const Recording x = run_with("m.silu:2", kSilu, a), y = run_with("", {}, b);
  EXPECT_EQ(line(name_call(x, y, pivot_of(PivotKind::structure, true, false)), 0), 10u);
}

// A function that one program alone has is other text as a whole: the operator says which line.
TEST(NameCall, NotOneOfAFunctionThatTheOtherProgramLacks) {
  Calls a, b;
  a.all = {call("main", at("<module>", 50, "main(x)")), call("cast", at("main", 10, "cast(w)")),
           call("silu", at("cast", 25, "silu(w)"))};
  b.all = {call("main", at("<module>", 50, "main(x)"))};
  const auto named = [&](std::vector<std::string> in_a, std::vector<std::string> in_b) {
    for (const std::string& f : in_a) a.defined.insert(function_hash({"", "m.py", f}));
    for (const std::string& f : in_b) b.defined.insert(function_hash({"", "m.py", f}));
    const Recording x = run_with("m.silu:2", kSilu, a), y = run_with("", {}, b);
    const Pivot pivot = name_call(x, y, pivot_of(PivotKind::structure, true, false));
    a.defined.clear(), b.defined.clear();
    return line(pivot, 0);
  };
  const std::vector<std::string> all = {"<module>", "main", "cast", "silu"};
  EXPECT_EQ(named(all, all), 10u);
  EXPECT_EQ(named(all, {"<module>", "main"}), 0u);
  // The call stands in a function of one program alone, and what it calls in none.
  EXPECT_EQ(named(all, {"<module>", "main", "silu"}), 25u);
  // A log of a former version does not tell.
  EXPECT_EQ(named(all, {}), 10u);
}

const Location kMul = at("rotate", 30, "x1 * cos");

Calls rotating(const std::string& given, bool rebound = false, const std::string& inner = "c") {
  Calls calls;
  calls.all = {
      call("apply", at("<module>", 50, "apply(q, cos)"), {{"", "q"}, {"c", given}}),
      call("rotate", at("apply", 40, "rotate(q, " + inner + ")"), {{"", "q"}, {"", inner}})};
  calls.parameters[{"", "m.py", "apply"}] = {{"q", "", false}, {"c", "", rebound}};
  calls.parameters[{"", "m.py", "rotate"}] = {{"x", "", true}, {"cos", "", false}};
  return calls;
}

TEST(NameCall, AnArgumentThroughTwoCalls) {
  const Recording x = run_with("m.mul:2", kMul, rotating("cos")),
                  y = run_with("m.mul:2", kMul, rotating("sin"));
  const Pivot named = name_call(x, y, pivot_of(PivotKind::input, true, true));
  EXPECT_EQ(line(named, 0), 50u);
  EXPECT_EQ(line(named, 1), 50u);
  EXPECT_TRUE(says(named.why, {.kind = ReasonKind::call_argument, .names = {"c", "cos", "sin"}}));
  // All inputs are equal: nothing was given otherwise.
  EXPECT_FALSE(name_call(x, y, pivot_of(PivotKind::value, true, true)).call[0]);
}

TEST(NameCall, NotAnArgumentThatTheFunctionReplaces) {
  const Recording x = run_with("m.mul:2", kMul, rotating("cos", true)),
                  y = run_with("m.mul:2", kMul, rotating("sin", true));
  EXPECT_FALSE(name_call(x, y, pivot_of(PivotKind::input, true, true)).call[0]);
}

TEST(NameCall, AnotherContextAroundTheCall) {
  const Location loss = at("loss", 30, "F.cross_entropy(x, y)");
  Calls a, b;
  a.all = {call("loss", at("step", 10, "loss(x, y)", "for x in data"))};
  b.all = {call("loss", at("step", 11, "loss(x, y)", "for x in data; with torch.no_grad()"))};
  const Recording x = run_with("m.cross:2", loss, a), y = run_with("m.cross:2", loss, b);
  const Pivot named = name_call(x, y, pivot_of(PivotKind::structure, true, true));
  EXPECT_EQ(line(named, 0), 10u);
  EXPECT_EQ(line(named, 1), 11u);
  EXPECT_TRUE(says(
      named.why, {.kind = ReasonKind::call_context, .side = 1, .names = {"with torch.no_grad()"}}));
  EXPECT_FALSE(name_call(x, x, pivot_of(PivotKind::structure, true, true)).call[0]);
}

}  // namespace
}  // namespace opguard::test
