#include "align/pair/settings.h"

#include <gtest/gtest.h>

#include "align/builder.h"
#include "report/reasons.h"

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
  EXPECT_EQ(words(report.refused), (Sentences{"control.mode differs: full in a, not set in b",
                                              "control.seed differs: 7 in a, 8 in b"}));
  EXPECT_TRUE(report.noted.empty());
}

// A value carried over is the value last read; what a mode leaves out is not there to compare.
TEST(Settings, OfModesOnlyThoseThatRecordEverythingAreComparable) {
  const auto run = [](const char* mode) { return run_with({{"mode", mode}}); };
  const auto alike = compare_settings(run("default"), run("full"));
  EXPECT_TRUE(alike.refused.empty());
  EXPECT_EQ(words(alike.noted), Sentences{"mode differs: default in a, full in b"});
  for (const char* less : {"trusted", "sdc", "model"}) {
    EXPECT_EQ(compare_settings(run(less), run("full")).refused.size(), 1u) << less;
    EXPECT_EQ(compare_settings(run(less), run(less)), SettingsReport{}) << less;
  }
  EXPECT_EQ(compare_settings(run_with({{"mode", "trusted"}, {"mode.trusted", "relu"}}),
                             run_with({{"mode", "trusted"}, {"mode.trusted", ""}}))
                .refused.size(),
            1u);
}

TEST(Settings, VersionsThreadsAndFlagsAreNoted) {
  const auto report =
      compare_settings(run_with({{"torch", "2.12.0"}, {"threads", "2"}, {"world", "2"}}, 2),
                       run_with({{"torch", "2.13.0"}, {"threads", "4"}}, 1));
  EXPECT_EQ(words(report.noted),
            (Sentences{"world size differs: 2 in a, 1 in b", "threads differs: 2 in a, 4 in b",
                       "torch differs: 2.12.0 in a, 2.13.0 in b"}));
  EXPECT_TRUE(report.refused.empty());
}

// Loss on one side only, and graphs only one side compiled, are said.
TEST(Settings, WhatTheRuntimeAndTheCompilerCountIsNoted) {
  EXPECT_EQ(words(compare_settings(run_with({{"dynamo_graphs", "0"}, {"opguard_faults", "2"}}),
                                   run_with({{"dynamo_graphs", "1"}}))
                      .noted),
            (Sentences{"dynamo_graphs differs: 0 in a, 1 in b",
                       "opguard_faults differs: 2 in a, not set in b"}));
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
  EXPECT_EQ(words(compare_settings(one, two).noted),
            Sentences{"the number of ranks differs: 1 in a, 2 in b"});
}

// What a log that was cut short does not tell yet is no difference.
TEST(Settings, OfACutLogWhatCameLaterIsNotCompared) {
  opguard::Run a = run_with({{"seed", "1338"}, {"dynamo_frames", "0"}, {"torch", "2.13.0"}}),
               b = run_with({{"seed", "52601"}, {"torch", "2.12.0"}});
  a.processes[0].set_again = {"seed"};
  const SettingDifference torch{"torch", "2.13.0", "2.12.0"};
  b.processes[0].closed = false;
  EXPECT_EQ(compare_settings(a, b).noted, std::vector{torch});
  b.processes[0].closed = true;
  EXPECT_EQ(compare_settings(a, b).noted.size(), 3u);
}

}  // namespace
}  // namespace opguard
