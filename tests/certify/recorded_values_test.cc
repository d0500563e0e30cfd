#include "certify/recorded_values.h"

#include <gtest/gtest.h>

#include <fstream>

#include "scratch.h"

namespace opguard {
namespace {

using Words = std::vector<std::string>;

Canaries recorded() {
  Canaries canaries;
  canaries.numbers = {{"graph_breaks", 1},
                      {"events", 100},
                      {"coverage_permille", 990},
                      {"peak_bytes", 1000},
                      {"graphs", 2}};
  canaries.names = {{"operators", {"aten::add", "aten::mul"}}};
  canaries.reason = "first";
  return canaries;
}

Words worse(const std::string& name, uint64_t value) {
  Canaries now = recorded();
  now.numbers[name] = value;
  return compare_canaries(recorded(), now);
}

TEST(Canaries, WhatIsWorseIsNamed) {
  EXPECT_EQ(compare_canaries(recorded(), recorded()), Words{});
  EXPECT_EQ(worse("graph_breaks", 2), Words{"graph_breaks: 2, recorded 1"});
  EXPECT_EQ(worse("graph_breaks", 0), Words{});
  EXPECT_EQ(worse("events", 99), Words{"events: 99, recorded 100"});
  EXPECT_EQ(worse("events", 101), Words{"events: 101, recorded 100"});
  EXPECT_EQ(worse("coverage_permille", 980), Words{"coverage_permille: 980, recorded 990"});
  EXPECT_EQ(worse("coverage_permille", 1000), Words{});
  EXPECT_EQ(worse("peak_bytes", 1100), Words{});
  EXPECT_EQ(worse("peak_bytes", 1101), Words{"peak_bytes: 1101, recorded 1000"});
}

TEST(Canaries, NamesThatCameAndWent) {
  Canaries now = recorded();
  now.names["operators"] = {"aten::add", "aten::div"};
  EXPECT_EQ(compare_canaries(recorded(), now), Words{"operators: new aten::div; gone aten::mul"});
  now.names.clear();  // not known here: another device
  EXPECT_EQ(compare_canaries(recorded(), now), Words{});
}

const AcceptedDrift kDrift = {"default-path", "model.py: mul", "values1",
                              "machine1",     "half scale",    "2026-12-31"};

TEST(Drift, IsKnownByItsValuesOnItsOwnMachineAlone) {
  auto known = [](AcceptedDrift seen, const std::string& now) {
    seen.place = "";  // nothing is proven yet
    return is_accepted_here({kDrift}, seen, now);
  };
  EXPECT_TRUE(known(kDrift, "2026-12-31T23:59:59Z"));
  EXPECT_FALSE(known(kDrift, "2027-01-01T00:00:00Z"));
  AcceptedDrift other = kDrift;
  other.values = "values2";
  EXPECT_FALSE(known(other, "2026-12-31"));
  other = kDrift;
  other.machine = "machine2";
  EXPECT_FALSE(known(other, "2026-12-31"));
  other = kDrift;
  other.check = "resume";
  EXPECT_FALSE(known(other, "2026-12-31"));
}

TEST(Drift, IsTheOneThatWasAccepted) {
  auto find = [](AcceptedDrift seen, const std::string& today) {
    return find_drift({kDrift}, seen, today).drift;
  };
  EXPECT_EQ(find(kDrift, "2026-12-31"), Drift::accepted);
  EXPECT_EQ(find(kDrift, "2027-01-01"), Drift::expired);
  AcceptedDrift other = kDrift;
  other.values = "values2";  // the same operator, and once more another value
  EXPECT_EQ(find(other, "2026-11-26"), Drift::other);
  other.machine = "machine2";  // values of another machine cannot be compared: the place decides
  EXPECT_EQ(find(other, "2026-11-26"), Drift::accepted);
  other.place = "model.py: add";
  EXPECT_EQ(find(other, "2026-11-26"), Drift::other);
  other = kDrift;
  other.check = "resume";
  EXPECT_EQ(find(other, "2026-11-26"), Drift::other);
}

TEST(Recorded, IsReadAsItWasWritten) {
  const auto dir = make_scratch();
  const std::string path = (dir / kRecordedFile).string();
  auto none = read_recorded(path);
  ASSERT_TRUE(bool(none));
  EXPECT_EQ(*none, RecordedValues());
  RecordedValues values;
  values.canaries["canaries"] = recorded();
  values.accepted = {kDrift};
  ASSERT_FALSE(bool(write_recorded(values, path)));
  auto read = read_recorded(path);
  ASSERT_TRUE(bool(read));
  EXPECT_EQ(*read, values);

  AcceptedDrift bad = kDrift;
  for (const auto& [until, reason] :
       {std::pair("soon", "why"), std::pair("2026-1-1", "why"), std::pair("2026-12-31", "")}) {
    bad.until = until;
    bad.reason = reason;
    values.accepted = {bad};
    ASSERT_FALSE(bool(write_recorded(values, path)));
    auto refused = read_recorded(path);
    ASSERT_FALSE(bool(refused)) << until << reason;
    llvm::consumeError(refused.takeError());
  }
  std::ofstream(path) << "{";
  auto damaged = read_recorded(path);
  ASSERT_FALSE(bool(damaged));
  EXPECT_NE(llvm::toString(damaged.takeError()).find(path), std::string::npos);
  std::filesystem::remove_all(dir);
}

}  // namespace
}  // namespace opguard
