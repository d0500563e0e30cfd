// Recomputation against the first forward, on runs written by hand.
#include "align/check/recompute.h"

#include <gtest/gtest.h>

#include "align/builder.h"
#include "report/reasons.h"
#include "report/findings.h"

namespace opguard::test {
namespace {

E op(std::string boundary, std::vector<S> slots, Phase phase = Phase::forward, uint32_t step = 0,
     std::string scalars = {}) {
  return {.boundary = std::move(boundary),
          .slots = std::move(slots),
          .scalars = std::move(scalars),
          .step = step,
          .phase = phase};
}

E again(std::string boundary, std::vector<S> slots, uint32_t step = 0, std::string scalars = {}) {
  return op(std::move(boundary), std::move(slots), Phase::recompute, step, std::move(scalars));
}

E node(std::string boundary) {
  return {.boundary = std::move(boundary),
          .slots = {in(90, "grad0"), out(91)},
          .phase = Phase::backward,
          .kind = EventKind::node,
          .node = "MulBackward0"};
}

// Two layers of one code: lin, act; values 10 n + ...
void forward_layers(LogBuilder& log, uint32_t step = 0) {
  for (uint64_t n : {1, 2}) {
    log.add(op("m.lin", {in(10 * n), out(10 * n + 1)}, Phase::forward, step));
    log.add(op("m.act", {in(10 * n + 1), out(10 * n + 2)}, Phase::forward, step));
  }
}

RecomputeCheck check(LogBuilder& log) {
  static Run run;
  run = run_of({log.log()});
  return check_recompute(run);
}

TEST(Recompute, LayersInReverseAreFound) {
  LogBuilder log;
  for (uint32_t step : {0, 1}) {
    forward_layers(log, step);
    for (uint64_t n : {2, 1}) {
      log.add(again("m.lin", {in(10 * n), out(10 * n + 1)}, step));
      log.add(again("m.act", {in(10 * n + 1), out(10 * n + 2)}, step)).add(node("m.act"));
    }
  }
  RecomputeCheck found = check(log);
  EXPECT_EQ(found.recomputed, 8u);
  EXPECT_EQ(found.compared, 8u);
  EXPECT_TRUE(found.findings.empty());
}

// Stretches with no gradient between them are told apart by what they read.
TEST(Recompute, StretchesWithoutANodeBetween) {
  LogBuilder log;
  forward_layers(log);
  for (uint64_t n : {2, 1}) {
    log.add(again("m.lin", {in(10 * n), out(10 * n + 1)}));
    log.add(again("m.act", {in(10 * n + 1), out(10 * n + 2)}));
  }
  EXPECT_TRUE(check(log).findings.empty());
}

TEST(Recompute, OnlyTheFirstThatDiffersIsTold) {
  LogBuilder log;
  forward_layers(log);
  log.add(op("m.head", {in(22), out(60)}));
  log.add(again("m.lin", {in(20), out(71)})).add(again("m.act", {in(71), out(72)}));
  log.add(node("m.act"));
  log.add(again("m.lin", {in(10), out(73)})).add(again("m.act", {in(73), out(74)}));
  RecomputeCheck found = check(log);
  ASSERT_EQ(found.findings.size(), 1u);
  EXPECT_EQ(found.findings[0].kind, PivotKind::value);
  EXPECT_EQ(found.findings[0].forward.event, 2u);
  EXPECT_EQ(found.findings[0].recompute.event, 5u);
  EXPECT_EQ(found.findings[0].times, 2u);
}

TEST(Recompute, ScalarShapeAndInput) {
  for (int kind : {0, 1, 2}) {
    LogBuilder log;
    log.add(op("m.lin", {in(1), out(2)}));
    log.add(op("m.act", {in(2), in(7, "arg1"), out(3)}, Phase::forward, 0, "arg2=1"));
    log.add(again("m.lin", {in(1), out(2)}));
    S result = out(kind == 0 ? 13 : 3);
    if (kind == 1) result.dtype = "bfloat16";
    log.add(again("m.act", {in(2), in(kind == 2 ? 17 : 7, "arg1"), result}, 0,
                  kind == 0 ? "arg2=2" : "arg2=1"));
    RecomputeCheck found = check(log);
    ASSERT_EQ(found.findings.size(), 1u) << kind;
    EXPECT_EQ(found.findings[0].kind, kind == 0   ? PivotKind::scalar
                                      : kind == 1 ? PivotKind::structure
                                                  : PivotKind::input);
    EXPECT_EQ(found.findings[0].recompute.event, 3u);
  }
}

TEST(Recompute, EarlyStopIsAPrefix) {
  LogBuilder log;
  forward_layers(log);
  E stopped = again("m.act", {in(21)});
  stopped.flags = kRaised;
  log.add(again("m.lin", {in(20), out(21)})).add(stopped).add(node("m.act"));
  log.add(again("m.lin", {in(10), out(11)}));
  RecomputeCheck found = check(log);
  EXPECT_EQ(found.compared, 3u);
  EXPECT_TRUE(found.findings.empty());
}

// The last operator was stopped before it had a result; what it drew from tells.
TEST(Recompute, AStoppedOperatorDrawsWhatItsForwardDrew) {
  for (uint64_t state : {7, 8}) {
    LogBuilder log;
    auto generators = [&](uint64_t value, Phase phase) {
      return E{.boundary = "<generators>",
               .slots = {in(value, "torch.cpu")},
               .phase = phase,
               .kind = EventKind::state};
    };
    log.add(generators(7, Phase::forward));
    E drawn = op("m.dropout", {in(20), out(21)});
    drawn.inside = 1;
    log.add(drawn).add(op("m.mul", {in(21), out(22)}));
    log.add(generators(state, Phase::recompute));
    E stopped = again("m.dropout", {in(20)});
    stopped.flags = kRaised;
    stopped.inside = 1;
    log.add(stopped).add(node("m.mul"));
    RecomputeCheck found = check(log);
    EXPECT_EQ(found.findings.size(), state == 7 ? 0u : 1u);
    for (const auto& finding : found.findings) EXPECT_EQ(finding.recompute.event, 4u);
  }
}

// A helper that a custom backward calls under create_graph is no recomputation.
TEST(Recompute, OperatorsOfABackwardAreNone) {
  LogBuilder log;
  forward_layers(log);
  log.add(again("m.lin", {in(81), out(82)}));
  RecomputeCheck found = check(log);
  EXPECT_EQ(found.recomputed, 1u);
  EXPECT_TRUE(found.findings.empty());
}

TEST(Recompute, ReportsOfOneRun) {
  LogBuilder log;
  forward_layers(log);
  log.add(again("m.lin", {in(20), out(71)}));
  Location place;
  place.file = "m.py", place.line = 4, place.callee = "F.dropout";
  log.at("m.lin", place);
  opguard::Run run = run_of({log.log()});
  const Findings found = check_single(run);
  EXPECT_TRUE(format_findings(run, found, false)
                  .starts_with("findings: 1 operator recomputed unlike in the forward, 1 of 1 "));
  EXPECT_NE(format_findings(run, found, false).find("first m.py:4"), std::string::npos);
  EXPECT_NE(format_findings_json(run, found).find("\"check\": \"recompute\""), std::string::npos);
  Verdict verdict;
  verdict.candidates.push_back({PivotKind::value, {}, {0, 4}, kNone, {{ReasonKind::other_result}}});
  add_recompute_findings(run_of({}), run, verdict);
  ASSERT_EQ(verdict.notes.size(), 1u);
  EXPECT_EQ(words(run_of({}), run, verdict.notes[0]),
            "run b: the recomputation of F.dropout at m.py:4 does not reproduce its forward "
            "(value); `opguard align --single` on its logs shows it");
  EXPECT_EQ(
      verdict.candidates[0].why,
      (Reasons{{ReasonKind::other_result}, {.kind = ReasonKind::recomputed_unlike, .side = 1}}));
}

}  // namespace
}  // namespace opguard::test
