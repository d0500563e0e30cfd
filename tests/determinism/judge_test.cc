// Facts that no machine without a GPU shows, and those that two runs tell.
#include "determinism/judge.h"

#include <gtest/gtest.h>

#include "determinism/words.h"

namespace opguard {
namespace {

using nlohmann::json;

// A process that trained for three steps; `more` is added on top.
RunFacts run_of(const json& more, const json& values = json::object()) {
  json facts = {{"facts", 1}, {"pid", 1}, {"rank", 0}, {"steps", 3}, {"values", values}};
  if (more.is_object()) facts.update(more);  // {} is none
  auto process = parse_facts(facts.dump(), "f");
  RunFacts run;
  run.processes.push_back(std::move(*process));
  return run;
}

json at_line(int line) {
  return {{"file", "/t/train.py"}, {"line", line}, {"function", "main"}, {"text", "x"}};
}

// The one finding of a ground; a ground of none where there are others.
const Finding* found(const std::vector<Finding>& all, Subject subject, Ground ground) {
  for (const Finding& finding : all)
    if (finding.subject == subject && finding.ground == ground) return &finding;
  return nullptr;
}

size_t violated(const std::vector<Finding>& all) {
  size_t count = 0;
  for (const Finding& finding : all) count += finding.hold == Hold::violated;
  return count;
}

TEST(Determinism, NothingSeenIsNothingViolated) {
  EXPECT_EQ(violated(judge_determinism(run_of({}), nullptr)), 0u);
  EXPECT_TRUE(judge_determinism(RunFacts(), nullptr).empty());
}

TEST(Determinism, BenchmarkOfCudnnPicksByTimeAndItsDefaultDoesNot) {
  const json on = {{"switches", {{"cudnn.benchmark", {{"first", "False"}, {"by", ""}}}}},
                   {"switches_at_end", {{"cudnn.benchmark", "True"}}},
                   {"cuda", true}};
  const json set = {
      {"sets", {{{"name", "cudnn.benchmark"}, {"value", "True"}, {"place", at_line(4)}}}}};
  const auto all = judge_determinism(run_of(set, on), nullptr);
  const Finding* finding = found(all, Subject::flag, Ground::by_time);
  ASSERT_NE(finding, nullptr);
  EXPECT_EQ(finding->place.line, 4u);
  EXPECT_EQ(finding->by, SetBy::code);
  json off = on;
  off["switches_at_end"]["cudnn.benchmark"] = "False";
  EXPECT_EQ(violated(judge_determinism(run_of({}, off), nullptr)), 0u);
}

TEST(Determinism, ASwitchThatAnotherWaySetsBackIsNamedByItsStep) {
  const json values = {
      {"switches", {{"deterministic_algorithms", {{"first", "True"}, {"by", "control"}}}}},
      {"switches_at_end", {{"deterministic_algorithms", "False"}}}};
  const json change = {{"changes",
                        {{{"name", "deterministic_algorithms"},
                          {"value", "False"},
                          {"before", "True"},
                          {"at_step", 2}}}}};
  const auto all = judge_determinism(run_of(change, values), nullptr);
  const Finding* finding = found(all, Subject::flag, Ground::changed);
  ASSERT_NE(finding, nullptr);
  EXPECT_EQ(finding->numbers, std::vector<int64_t>{2});
  EXPECT_FALSE(finding->place.known());
}

TEST(Determinism, OfNcclAlgorithmAndTopologyAreSetOrLeft) {
  const json values = {{"environment", {{"NCCL_ALGO", "Ring"}, {"NCCL_PROTO", "Simple"}}},
                       {"control", {{"env.NCCL_PROTO", "Simple"}}}};
  const json group = {{"groups", {{{"backend", "nccl"}, {"world", 8}, {"place", at_line(3)}}}}};
  const auto all = judge_determinism(run_of(group, values), nullptr);
  size_t left = 0;
  for (const Finding& finding : all) {
    if (finding.surface != Surface::collectives || finding.subject != Subject::variable) continue;
    if (finding.name == "NCCL_ALGO") EXPECT_EQ(finding.by, SetBy::environment);
    if (finding.name == "NCCL_PROTO") EXPECT_EQ(finding.by, SetBy::control);
    left += finding.hold == Hold::left;
  }
  EXPECT_EQ(left, 5u);  // two of sums in a switch, two of channels, the topology
  // Set once the group is there, nobody reads it.
  json late = group;
  late["variables"] = {
      {{"name", "NCCL_ALGO"}, {"value", "Tree"}, {"place", at_line(9)}, {"late", true}}};
  EXPECT_NE(
      found(judge_determinism(run_of(late, values), nullptr), Subject::variable, Ground::too_late),
      nullptr);
}

TEST(Determinism, TritonTunesByTimeUnlessItsChoiceIsKept) {
  const json tuned = {{"triton_autotuners", 2}};
  EXPECT_NE(found(judge_determinism(run_of({}, tuned), nullptr), Subject::compile, Ground::by_time),
            nullptr);
  json kept = tuned;
  kept["environment"] = {{"TRITON_CACHE_AUTOTUNING", "1"}};
  EXPECT_EQ(violated(judge_determinism(run_of({}, kept), nullptr)), 0u);
}

TEST(Determinism, MaxAutotuneIsByTime) {
  const json compiled = {
      {"compiled", {{{"mode", "max-autotune"}, {"tuned", true}, {"place", at_line(6)}}}}};
  const auto all = judge_determinism(run_of(compiled), nullptr);
  const Finding* finding = found(all, Subject::compile, Ground::by_time);
  ASSERT_NE(finding, nullptr);
  EXPECT_EQ(finding->place.line, 6u);
  const json plain = {{"compiled", {{{"mode", ""}, {"tuned", false}, {"place", at_line(6)}}}}};
  EXPECT_EQ(violated(judge_determinism(run_of(plain), nullptr)), 0u);
}

json loader(int workers) {
  return {{"loaders",
           {{{"sampler", "SequentialSampler"},
             {"passes", 1},
             {"workers", workers},
             {"place", at_line(5)},
             {"order", {1, 2}},
             {"batches", {3, 4}}}}},
          {"worker_seeds_numpy", false}};
}

TEST(Determinism, AnOldTorchLeavesNumpyOfWorkersUnseeded) {
  EXPECT_NE(found(judge_determinism(run_of({}, loader(2)), nullptr), Subject::workers,
                  Ground::numpy_in_workers),
            nullptr);
  EXPECT_EQ(violated(judge_determinism(run_of({}, loader(0)), nullptr)), 0u);
}

TEST(Determinism, BucketsOfTwoRunsAreCompared) {
  const json replica = {
      {"replicas", {{{"bucket_cap_mb", "25"}, {"given", json::array()}, {"place", at_line(7)}}}}};
  const json one = {{"buckets", {{{"rebuilt_bucket_sizes", "8, 16"}}}}};
  const json other = {{"buckets", {{{"rebuilt_bucket_sizes", "16, 8"}}}}};
  const RunFacts a = run_of(replica, one), b = run_of(replica, other);
  EXPECT_EQ(violated(judge_determinism(a, &a)), 0u);
  EXPECT_NE(found(judge_determinism(a, &b), Subject::buckets, Ground::order_differs), nullptr);
}

// The second run goes on from the first one's checkpoint: its batches are others.
TEST(Determinism, RunsThatLoadedOtherFilesAreNotCompared) {
  json later = loader(0);
  later["loaders"][0]["order"] = {7, 8};
  const RunFacts a = run_of({}, loader(0)), b = run_of({}, later);
  EXPECT_EQ(violated(judge_determinism(a, &b)), 1u);
  const RunFacts resumed = run_of({{"loaded", {{{"file", "last.pt"}}}}}, later);
  EXPECT_EQ(violated(judge_determinism(a, &resumed)), 0u);
}

TEST(Determinism, AnOperatorOfTheSecondRunIsNamed) {
  const RunFacts a = run_of({}),
                 b = run_of({{"operators", {{{"name", "put_"}, {"place", at_line(8)}}}}});
  const auto all = judge_determinism(a, &b);
  ASSERT_NE(found(all, Subject::op, Ground::no_kernel), nullptr);
  EXPECT_EQ(found(all, Subject::operators, Ground::unused), nullptr);
}

TEST(Determinism, WhatAProgramNamesDrivesNoTerminal) {
  json place = at_line(2);
  place["text"] = "\x1b[2J";
  place["file"] = "/t/\x1b]0;x.py";
  const auto all = judge_determinism(
      run_of({{"draws", {{{"generator", "numpy"}, {"call", "\x1b[1m"}, {"place", place}}}}}),
      nullptr);
  EXPECT_EQ(determinism_table(all, "/t").find('\x1b'), std::string::npos);
}

// Every ground says something, of whatever it is about.
TEST(Determinism, EveryGroundHasWords) {
  for (uint8_t ground = 0; ground <= static_cast<uint8_t>(Ground::fixed_order); ++ground) {
    Finding finding;
    finding.ground = static_cast<Ground>(ground);
    finding.value = "1";
    finding.name = "x";
    EXPECT_FALSE(words_of(finding).empty()) << int(ground);
  }
}

}  // namespace
}  // namespace opguard
