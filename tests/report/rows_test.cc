// Which rows of a long report are shown, and that the others are counted.
#include "report/rows.h"

#include <gtest/gtest.h>

#include "align/builder.h"
#include "nlohmann/json.hpp"
#include "report/page_data.h"
#include "report/perfetto.h"

namespace opguard {
namespace {

using test::in;
using test::LogBuilder;
using test::out;

constexpr uint32_t kEvents = 600;

// A rank's run: from event `changed` on, results are others; one event of three hundred only once.
LogBuilder long_run(int32_t rank, bool b, uint32_t changed) {
  LogBuilder log(rank);
  for (uint32_t i = 0; i < kEvents; ++i) {
    const uint64_t other = b && i >= changed ? 1000000 : 0;
    log.add({.boundary = "m.op" + std::to_string(i % 7) + ":a",
             .slots = {in(i + (i > changed ? other : 0)), out(i + 1 + other)}});
    if (b && i % 300 == 100) log.add({.boundary = "m.extra:b", .slots = {in(i), out(i + 5000000)}});
  }
  return log;
}

struct Compared {
  opguard::Run a, b;
  Alignment alignment;
  Verdict verdict;

  explicit Compared(uint32_t changed)
      : a(test::run_of({long_run(0, false, changed).log(), long_run(1, false, kEvents).log()})),
        b(test::run_of({long_run(0, true, changed).log(), long_run(1, true, kEvents).log()})),
        alignment(align_runs(a, b)) {
    for (const Pair& pair : alignment.processes[0].pairs)
      if (pair.a == changed)
        verdict.candidates = {{PivotKind::value, {0, pair.a}, {0, pair.b}, kNone}};
  }
  Report report() const { return {a, b, alignment, verdict, {}}; }
};

size_t count(const std::vector<bool>& kept) { return std::count(kept.begin(), kept.end(), true); }

TEST(Rows, AShortReportShowsAll) {
  const Compared runs(500);
  const auto lanes = lanes_of(runs.report());
  for (size_t most : {size_t{2 * kEvents + 4}, kMostRows})
    for (const auto& kept : kept_rows(runs.report(), lanes, most))
      EXPECT_EQ(count(kept), kept.size());
}

TEST(Rows, ALongOneShowsWhatDiffersFirst) {
  const Compared runs(590);
  const Report report = runs.report();
  const auto lanes = lanes_of(report);
  const auto kept = kept_rows(report, lanes, 400);
  size_t all = 0;
  for (size_t i = 0; i < lanes.size(); ++i) {
    all += count(kept[i]);
    for (size_t row = 0; row < lanes[i].rows.size(); ++row)
      EXPECT_TRUE(!lanes[i].rows[row].differs() || kept[i][row]) << i << " " << row;
  }
  EXPECT_LE(all, 400u + 4 * 101u);  // and the neighbourhoods of candidates
  EXPECT_LT(all, 2 * size_t{kEvents});
  ASSERT_FALSE(report.verdict.candidates.empty());
  const RowRef pivot = find_row(lanes, 0, report.verdict.candidates[0].a);
  ASSERT_GE(pivot.lane, 0);
  for (uint32_t row = pivot.row - 50; row <= pivot.row; ++row) EXPECT_TRUE(kept[pivot.lane][row]);
}

// Every row is listed or counted, by what it is.
TEST(Rows, ThePageCountsWhatItLeavesOut) {
  for (uint32_t changed : {20u, 590u}) {
    const Compared runs(changed);
    const auto lanes = lanes_of(runs.report());
    const auto kept = kept_rows(runs.report(), lanes, 300);
    LeftOut expected;
    for (size_t i = 0; i < lanes.size(); ++i)
      for (size_t row = 0; row < lanes[i].rows.size(); ++row)
        if (!kept[i][row]) expected.add(lanes[i].rows[row]);
    const auto page = nlohmann::json::parse(page_data(runs.report(), 300));
    uint64_t sums[4] = {};
    for (const auto& gap : page["gaps"])
      for (int k = 0; k < 4; ++k) sums[k] += gap[k].get<uint64_t>();
    EXPECT_EQ(sums[0], expected.equal);
    EXPECT_EQ(sums[1], expected.differing);
    EXPECT_EQ(sums[2], expected.only_a);
    EXPECT_EQ(sums[3], expected.only_b);
    EXPECT_GT(expected.rows(), 0u);
    EXPECT_TRUE(changed != 20 || expected.differing > 0);
    const auto whole = nlohmann::json::parse(page_data(runs.report()));
    EXPECT_TRUE(whole["gaps"].empty());
  }
}

TEST(Rows, TheTraceCountsWhatItLeavesOut) {
  const Compared runs(590);
  const std::string whole = format_perfetto(runs.report()),
                    part = format_perfetto(runs.report(), 300);
  EXPECT_EQ(whole.find("left out"), std::string::npos);
  EXPECT_LT(part.size(), whole.size() / 2);
  const auto lanes = lanes_of(runs.report());
  const auto kept = kept_rows(runs.report(), lanes, 300);
  // The names of the slices: one for each number of rows left out together.
  LeftOut gap;
  size_t gaps = 0;
  for (size_t i = 0; i < lanes.size(); ++i)
    for (size_t row = 0; row <= lanes[i].rows.size(); ++row) {
      if (row < lanes[i].rows.size() && !kept[i][row]) {
        gap.add(lanes[i].rows[row]);
        continue;
      }
      if (gap.rows() > 0) {
        ++gaps;
        EXPECT_EQ(gap.rows(), gap.equal);
        EXPECT_NE(part.find("left out: " + std::to_string(gap.equal) + " equal"),
                  std::string::npos);
      }
      gap = {};
    }
  EXPECT_GT(gaps, 0u);
}

}  // namespace
}  // namespace opguard
