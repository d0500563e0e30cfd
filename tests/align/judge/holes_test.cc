#include "align/judge/holes.h"

#include <gtest/gtest.h>

#include "align/builder.h"

namespace opguard {
namespace {

using test::in;
using test::LogBuilder;
using test::out;

struct Case {
  opguard::Run a, b;
  Outcome judge(Outcome outcome, std::vector<Pivot> candidates = {}) const {
    Verdict verdict;
    verdict.outcome = outcome;
    verdict.candidates = std::move(candidates);
    return limit_by_holes(verdict, a, b, align_runs(a, b)).outcome;
  }
};

Case two_runs() {
  LogBuilder a, b;
  for (uint64_t value : {1, 2, 3}) {
    a.add({"x:aaaa", {in(value), out(value + 10)}});
    b.add({"x:aaaa", {in(value), out(value + (value == 3 ? 20 : 10))}});
  }
  a.add({"y:bbbb", {in(13)}});
  return {test::run_of({a.log()}), test::run_of({b.log()})};
}

const Pivot kPaired{PivotKind::value, {0, 2}, {0, 2}, kNone};
const Pivot kEqualPair{PivotKind::value, {0, 1}, {0, 1}, kNone};
const Pivot kOneSided{PivotKind::structure, {0, 3}, {}, kNone};

TEST(Holes, WholeLogsKeepTheirVerdict) {
  const Case c = two_runs();
  EXPECT_EQ(c.judge(Outcome::identical), Outcome::identical);
  EXPECT_EQ(c.judge(Outcome::diverged, {kOneSided}), Outcome::diverged);
}

TEST(Holes, AbsenceProvesNothingInAnIncompleteLog) {
  for (int how = 0; how < 3; ++how) {
    Case c = two_runs();
    ProcessLog& log = c.b.processes[0];
    if (how == 0) log.closed = false;
    if (how == 1) log.lost = 1;
    if (how == 2) log.damage = "record 3: cut short";
    EXPECT_EQ(c.judge(Outcome::identical), Outcome::inconclusive);
    EXPECT_EQ(c.judge(Outcome::diverged, {kOneSided}), Outcome::inconclusive);
    EXPECT_EQ(c.judge(Outcome::diverged, {kEqualPair}), Outcome::inconclusive);
    EXPECT_EQ(c.judge(Outcome::diverged), Outcome::inconclusive);
    // Both sides recorded this pair, and it differs.
    EXPECT_EQ(c.judge(Outcome::diverged, {kPaired}), Outcome::diverged);
  }
}

TEST(Holes, AWorkerKilledAtTheEndIsNoHole) {
  Case c = two_runs();
  ProcessLog worker = LogBuilder().add({"loader.stack:cccc", {in(5)}}).log();
  worker.closed = false;
  c.a.processes.push_back(worker);
  EXPECT_EQ(c.judge(Outcome::identical), Outcome::identical);
  c.a.processes[1].gaps = {{1, 0}};
  EXPECT_EQ(c.judge(Outcome::identical), Outcome::inconclusive);
  c.a.processes[1].gaps.clear();
  c.a.processes[1].lost = 1;
  EXPECT_EQ(c.judge(Outcome::identical), Outcome::inconclusive);
  c.a.processes[1].lost = 0;
  c.a.processes[1].slots.edit()[0].flags = kModelValue;
  EXPECT_EQ(c.judge(Outcome::identical), Outcome::inconclusive);
}

}  // namespace
}  // namespace opguard
