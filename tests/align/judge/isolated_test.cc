#include "align/judge/isolated.h"

#include <gtest/gtest.h>

#include "align/builder.h"
#include "report/reasons.h"

namespace opguard::test {
namespace {

// A chain of operators, each reading what the one before it left.
LogBuilder chain(size_t length) {
  LogBuilder log;
  for (uint64_t i = 0; i < length; ++i)
    log.add({"m.op" + std::to_string(i % 3) + ":aaaa", {in(i + 1), out(i + 2)}});
  return log;
}

std::vector<IsolatedPair> isolated(LogBuilder& a, LogBuilder& b) {
  const opguard::Run x = run_of({a.log()}), y = run_of({b.log()});
  return isolated_pairs(x, y, align_runs(x, y));
}

void change(LogBuilder& log, size_t event, bool output, uint64_t value) {
  Slot& slot = log.log().slots.edit()[log.log().events[event].first_slot + output];
  slot.value = {value * 0x0101010101010101ull, value};
  slot.flat = slot.value.h;
}

TEST(Isolated, AmongEqualNeighbours) {
  LogBuilder a = chain(20), b = chain(20);
  change(b, 9, true, 999);
  const auto found = isolated(a, b);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0], (IsolatedPair{{0, 9}, {0, 9}, 19}));
}

TEST(Isolated, NotWhatIsReadOn) {
  LogBuilder a = chain(20), b = chain(20);
  change(b, 9, true, 999);
  change(b, 10, false, 999);
  EXPECT_TRUE(isolated(a, b).empty());
  // However far behind.
  LogBuilder c = chain(20);
  change(c, 9, true, 999);
  change(c, 18, false, 999);
  EXPECT_TRUE(isolated(a, c).empty());
}

TEST(Isolated, NotAtTheEndsOrBesideOthers) {
  for (size_t event : {0, 3, 16, 19}) {
    LogBuilder a = chain(20), b = chain(20);
    change(b, event, true, 999);
    EXPECT_TRUE(isolated(a, b).empty()) << event;
  }
  LogBuilder a = chain(20), b = chain(20);
  change(b, 9, true, 999), change(b, 12, true, 998);
  EXPECT_TRUE(isolated(a, b).empty());
}

TEST(Isolated, ArgumentsAreNoAlarmOfThatKind) {
  LogBuilder a, b;
  for (uint64_t i = 0; i < 20; ++i) {
    a.add({"m.op:aaaa", {in(i + 1), out(i + 2)}, i == 9 ? "eps=1" : "eps=3"});
    b.add({"m.op:aaaa", {in(i + 1), out(i + 2)}, i == 9 ? "eps=2" : "eps=3"});
  }
  EXPECT_TRUE(isolated(a, b).empty());
}

TEST(Isolated, IsSaidOfThePivotAndInANote) {
  LogBuilder a = chain(20), b = chain(20);
  change(b, 9, true, 999);
  const opguard::Run x = run_of({a.log()}), y = run_of({b.log()});
  const auto found = isolated_pairs(x, y, align_runs(x, y));
  Verdict verdict;
  verdict.candidates.push_back(
      {PivotKind::value, {0, 9}, {0, 9}, 19, {{ReasonKind::other_result}}});
  mark_isolated(found, verdict);
  EXPECT_EQ(verdict.candidates[0].why,
            (Reasons{{ReasonKind::other_result}, {ReasonKind::likely_false_alarm}}));
  EXPECT_TRUE(verdict.notes.empty());
  verdict.candidates.clear();
  mark_isolated(found, verdict);
  ASSERT_EQ(verdict.notes.size(), 1u);
  EXPECT_EQ(words(x, y, verdict.notes[0]),
            "a pair differs alone: m.op0:aaaa m.op0, step 0, slot out0; likely a false alarm: its "
            "neighbours are equal and nothing reads what differs");
}

}  // namespace
}  // namespace opguard::test
