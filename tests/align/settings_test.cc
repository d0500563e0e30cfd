#include "align/settings.h"

#include <gtest/gtest.h>

#include "builder.h"

namespace opguard {
namespace {

using Sentences = std::vector<std::string>;

opguard::Run run_with(std::map<std::string, std::string> settings, int32_t world = 1) {
  test::LogBuilder log;
  log.log().settings = std::move(settings);
  log.log().world = world;
  return test::run_of({log.log()});
}

TEST(Settings, AlikeSaysNothing) {
  const auto run = run_with({{"torch", "2.13.0"}, {"control.seed", "7"}});
  EXPECT_EQ(compare_settings(run, run), SettingsReport{});
}

TEST(Settings, OwnControlIsRefused) {
  const auto report = compare_settings(run_with({{"control.seed", "7"}, {"control.mode", "full"}}),
                                       run_with({{"control.seed", "8"}}));
  EXPECT_EQ(report.refused, (Sentences{"control.mode differs: A full, B not set",
                                       "control.seed differs: A 7, B 8"}));
  EXPECT_TRUE(report.noted.empty());
}

TEST(Settings, VersionsThreadsAndFlagsAreNoted) {
  const auto report = compare_settings(run_with({{"torch", "2.12.0"}, {"threads", "2"}}, 2),
                                       run_with({{"torch", "2.13.0"}, {"threads", "4"}}, 1));
  EXPECT_EQ(report.noted, (Sentences{"world size differs: A 2, B 1", "threads differs: A 2, B 4",
                                     "torch differs: A 2.12.0, B 2.13.0"}));
  EXPECT_TRUE(report.refused.empty());
}

TEST(Settings, WhereItRanIsNoSetting) {
  EXPECT_EQ(
      compare_settings(
          run_with({{"hostname", "one"}, {"pid", "1"}, {"python.executable", "x"}, {"lib", "/a"}}),
          run_with({{"hostname", "two"}, {"pid", "2"}, {"python.executable", "y"}, {"lib", "/b"}})),
      SettingsReport{});
}

TEST(Settings, NumberOfRanks) {
  const opguard::Run one = test::run_of({test::LogBuilder(0).log()});
  const opguard::Run two = test::run_of({test::LogBuilder(0).log(), test::LogBuilder(1).log()});
  EXPECT_EQ(compare_settings(one, two).noted, Sentences{"the number of ranks differs: A 1, B 2"});
}

}  // namespace
}  // namespace opguard
