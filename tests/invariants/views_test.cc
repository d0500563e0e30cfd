// The rows that observations give (src/invariants/views).
#include <gtest/gtest.h>

#include "observed_program.h"

namespace opguard {
namespace {

using Fields = std::vector<std::pair<std::string, SeenValue>>;

struct OneProcess {
  CollectedRows rows;
  RunViews views{rows.texts, rows};
  ObservedProgram program{views};
};

// A linear model of one parameter, and an optimizer that holds it.
void describe_model(ObservedProgram& program, bool requires_grad = true, SeenValue optimizer = 0) {
  program.see("module", {{"number", 0},
                         {"name", ""},
                         {"type", "Net"},
                         {"library", false},
                         {"root", 0},
                         {"parameters", 0}});
  program.see("module", {{"number", 1},
                         {"name", "fc"},
                         {"type", "Linear"},
                         {"library", true},
                         {"root", 0},
                         {"parameters", 1}});
  program.see("parameter", {{"number", 0},
                            {"root", 0},
                            {"name", "fc.weight"},
                            {"module", 1},
                            {"kind", "parameter"},
                            {"attr", "weight"},
                            {"dtype", "float32"},
                            {"requires_grad", requires_grad},
                            {"leaf", true},
                            {"storage", 0},
                            {"names", std::vector<std::string>{"fc.weight"}},
                            {"constant", false},
                            {"optimizer", optimizer}});
}

void forward(ObservedProgram& program, bool training = true) {
  program.see("form", {{"number", training ? 0 : 1},
                       {"training", training},
                       {"grad", true},
                       {"inputs", std::vector<TensorValue>{{"x", "float32", {8, 4}, false}}},
                       {"outputs", std::vector<TensorValue>{{"", "float32", {8, 2}, true}}},
                       {"parameter_wants", true},
                       {"uniform", true}});
  program.see("call", {{"module", 1},
                       {"form", training ? 0 : 1},
                       {"caller", 0},
                       {"place", "model.py:7:Net.forward"}});
  program.see("call", {{"module", 0}, {"form", training ? 0 : 1}, {"place", "train.py:20:main"}});
}

void step(ObservedProgram& program, const Fields& update) {
  Fields all = {{"parameter", 0}, {"optimizer", 0}};
  all.insert(all.end(), update.begin(), update.end());
  program.see("update", all);
  program.see("optimizer", {{"number", 0},
                            {"type", "SGD"},
                            {"lr", std::vector<double>{0.1}},
                            {"held", 1},
                            {"strangers", 0},
                            {"changed", 1},
                            {"trainable_left", 0},
                            {"gradient_norm", 1.0},
                            {"skipped", false},
                            {"place", "train.py:22:main"}});
  program.end_step();
}

const Fields kGoodUpdate = {{"value", Bits{2}},     {"before", Bits{1}},
                            {"gradient", Bits{9}},  {"gradient_dtype", "float32"},
                            {"gradient_norm", 1.0}, {"norm", 2.0},
                            {"changed", true},      {"training", true}};

TEST(Views, AParameterThatTrains) {
  OneProcess run;
  describe_model(run.program);
  forward(run.program);
  run.program.see("api", {{"name", "backward"},
                          {"number", 0.5},
                          {"flag", true},
                          {"result", 0},
                          {"place", "train.py:21:main"}});
  step(run.program, kGoodUpdate);
  const SeenRow row = run.rows.only("parameter", "fc.weight");
  EXPECT_EQ(row["requires_grad"], "yes");
  EXPECT_EQ(row["held"], "yes");
  EXPECT_EQ(row["used"], "yes");
  EXPECT_EQ(row["has_grad"], "yes");
  EXPECT_EQ(row["changed"], "yes");
  EXPECT_EQ(row["noticeable"], "yes");
  EXPECT_EQ(row["backward"], "yes");
  EXPECT_EQ(row["module"], "Linear");
  EXPECT_EQ(row.module, "fc (Linear)");
  EXPECT_EQ(row.place, "train.py:22:main");
  EXPECT_EQ(run.rows.only("optimizer")["holds_trainable"], "yes");
}

// Rprop leaves a value as it is where its gradient turns, and moves it at the next step.
TEST(Views, OneStepThatChangesNothingIsNotTwo) {
  const Fields resting = {{"value", Bits{1}},     {"before", Bits{1}},
                          {"gradient", Bits{9}},  {"gradient_dtype", "float32"},
                          {"gradient_norm", 1.0}, {"norm", 2.0},
                          {"changed", false},     {"training", true}};
  OneProcess run;
  describe_model(run.program);
  for (const Fields& update : {resting, kGoodUpdate, resting, resting}) {
    forward(run.program);
    step(run.program, update);
  }
  std::vector<std::string> lately;
  for (const SeenRow& row : run.rows.of("parameter")) lately.push_back(row["changed_lately"]);
  EXPECT_EQ(lately, (std::vector<std::string>{"?", "yes", "yes", "no"}));
}

TEST(Views, AGradientThatIsAMillionthOfTheLargestIsSlight) {
  OneProcess run;
  describe_model(run.program);
  run.program.see("parameter", {{"number", 1},
                                {"root", 0},
                                {"name", "fc.bias"},
                                {"module", 1},
                                {"kind", "parameter"},
                                {"attr", "bias"},
                                {"dtype", "float32"},
                                {"requires_grad", true},
                                {"leaf", true},
                                {"storage", 1},
                                {"names", std::vector<std::string>{"fc.bias"}},
                                {"constant", false},
                                {"optimizer", 0}});
  forward(run.program);
  run.program.see("update", {{"parameter", 1},
                             {"optimizer", 0},
                             {"value", Bits{3}},
                             {"before", Bits{3}},
                             {"gradient", Bits{8}},
                             {"gradient_dtype", "float32"},
                             {"gradient_norm", 5e-9},
                             {"norm", 2.0},
                             {"changed", false},
                             {"training", true}});
  step(run.program, kGoodUpdate);
  EXPECT_EQ(run.rows.only("parameter", "fc.weight")["gradient_slight"], "no");
  EXPECT_EQ(run.rows.only("parameter", "fc.bias")["gradient_slight"], "yes");
}

TEST(Views, WithoutAGradientTheModulesCallIsThePlace) {
  OneProcess run;
  describe_model(run.program);
  forward(run.program);
  step(run.program, {{"value", Bits{1}}, {"before", Bits{1}}, {"changed", false}});
  const SeenRow row = run.rows.only("parameter");
  EXPECT_EQ(row["has_grad"], "no");
  EXPECT_EQ(row.place, "model.py:7:Net.forward");
  EXPECT_EQ(row.detail, "no gradient, not changed by the step");
}

TEST(Views, AFrozenParameterIsHeldForNothing) {
  OneProcess run;
  describe_model(run.program, /*requires_grad=*/false);
  forward(run.program);
  step(run.program, {{"value", Bits{1}}, {"before", Bits{1}}, {"changed", false}});
  EXPECT_EQ(run.rows.only("optimizer")["holds_trainable"], "no");
}

TEST(Views, GradientsOfTheLastStepAreStale) {
  OneProcess run;
  describe_model(run.program);
  for (int stale : {0, 1}) {
    forward(run.program);
    run.program.see("api", {{"name", "backward"},
                            {"number", 0.5},
                            {"flag", true},
                            {"result", stale},
                            {"place", "train.py:21:main"}});
    step(run.program, kGoodUpdate);
  }
  auto rows = run.rows.of("backward");
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0]["stale"], "no");
  EXPECT_EQ(rows[1]["stale"], "yes");
  EXPECT_EQ(rows[1]["reaches_step"], "yes");
  EXPECT_EQ(rows[1].place, "train.py:21:main");
}

TEST(Views, GradientsThatAreThrownAway) {
  OneProcess run;
  describe_model(run.program);
  forward(run.program);
  run.program.see("api", {{"name", "backward"}, {"flag", true}, {"place", "train.py:21:main"}});
  run.program.see("api", {{"name", "zero_grad"}, {"number", 1}, {"place", "train.py:22:main"}});
  EXPECT_EQ(run.rows.only("backward")["reaches_step"], "no");
}

TEST(Views, TheOrderOfCalls) {
  OneProcess run;
  describe_model(run.program);
  for (int i = 0; i < 2; ++i) {
    run.program.see("api", {{"name", "zero_grad"}, {"place", "train.py:19:main"}});
    forward(run.program);
    run.program.see("api", {{"name", "backward"}, {"place", "train.py:21:main"}});
    step(run.program, kGoodUpdate);
  }
  const SeenRow row = run.rows.last("sequence", "backward");
  EXPECT_EQ(row["call"], "backward");
  EXPECT_EQ(row["since_step:zero_grad"], "yes");
  EXPECT_EQ(row["since_last:step"], "yes");
  EXPECT_EQ(row["ever:clip_grad"], "no");
  EXPECT_EQ(row["first"], "no");
}

TEST(Views, EvaluationModeBehindABackward) {
  OneProcess run;
  describe_model(run.program);
  forward(run.program, /*training=*/false);
  run.program.see("api", {{"name", "backward"}, {"place", "train.py:21:main"}});
  step(run.program, kGoodUpdate);
  EXPECT_EQ(run.rows.only("backward")["training"], "no");
  EXPECT_EQ(run.rows.only("root")["training"], "no");
}

TEST(Views, ACheckpointOfTwoTimes) {
  OneProcess run;
  run.program.see("save", {{"path", "a.pt"},
                           {"tensors", 4},
                           {"live", 4},
                           {"same", 3},
                           {"missing", std::vector<std::string>{}},
                           {"unlike", std::vector<std::string>{"norm.weight"}},
                           {"place", "train.py:30:save"}});
  const SeenRow row = run.rows.only("save");
  EXPECT_EQ(row["mixed"], "yes");
  EXPECT_EQ(row["equals_live"], "no");
  EXPECT_EQ(row.detail, "not the live value: norm.weight");
}

// One pass of a loader over `samples`, in batches of two.
void pass(ObservedProgram& program, int number, const std::vector<uint64_t>& samples, int planned) {
  int taken = 0;
  for (size_t i = 0; i < samples.size(); i += 2) {
    std::vector<Bits> rows = {{samples[i]}};
    if (i + 1 < samples.size()) rows.push_back({samples[i + 1]});
    program.see("batch", {{"loader", 0},
                          {"pass", number},
                          {"index", taken++},
                          {"rows", rows},
                          {"place", "train.py:18:main"}});
  }
  (void)planned;
  program.see("pass", {{"loader", 0}, {"pass", number}, {"taken", taken}, {"ended", true}});
}

void loader(ObservedProgram& program, int batches) {
  program.see("loader", {{"number", 0},
                         {"type", "DataLoader"},
                         {"workers", 2},
                         {"sampler", "RandomSampler"},
                         {"shuffled", true},
                         {"distributed", false},
                         {"batches", batches}});
}

TEST(Views, PassesOverALoader) {
  OneProcess run;
  loader(run.program, 2);
  pass(run.program, 0, {1, 2, 3, 4}, 2);
  pass(run.program, 1, {1, 2, 3, 4}, 2);
  pass(run.program, 2, {4, 2, 2, 1}, 2);
  auto rows = run.rows.of("epoch");
  ASSERT_EQ(rows.size(), 4u);
  EXPECT_EQ(rows[0]["complete"], "yes");
  EXPECT_EQ(rows[0]["new_order"], "?");
  EXPECT_EQ(rows[1]["new_order"], "no");
  EXPECT_EQ(rows[1].detail, "the same 4 samples in the same order");
  EXPECT_EQ(rows[2]["samples_distinct"], "no") << "at once";
  EXPECT_EQ(rows[3]["new_order"], "yes");
}

// Two ranks that train one parameter, with the values they hold after each step.
struct TwoRanks {
  CollectedRows rows;
  RunViews views{rows.texts, rows};
  ObservedProgram first{views, 0}, second{views, 1};

  TwoRanks() {
    for (auto [program, rank] : {std::pair(&first, 0), std::pair(&second, 1)}) {
      program->see("group", {{"rank", rank}, {"world", 2}, {"backend", "gloo"}});
      describe_model(*program);
    }
  }
  void both(uint64_t before_first, uint64_t before_second, uint64_t value_first,
            uint64_t value_second) {
    for (auto [program, before, value] : {std::tuple(&first, before_first, value_first),
                                          std::tuple(&second, before_second, value_second)}) {
      forward(*program);
      step(*program, {{"value", Bits{value}},
                      {"before", Bits{before}},
                      {"gradient", Bits{value}},
                      {"gradient_dtype", "float32"},
                      {"gradient_norm", 1.0},
                      {"norm", 1.0},
                      {"changed", true},
                      {"training", true}});
    }
  }
};

TEST(Views, RanksComeApart) {
  TwoRanks run;
  run.both(1, 1, 2, 2);
  run.both(2, 2, 3, 3);
  run.both(3, 3, 4, 5);
  auto rows = run.rows.of("rank_parameters");
  ASSERT_EQ(rows.size(), 3u);
  EXPECT_EQ(rows[1]["equal"], "yes");
  EXPECT_EQ(rows[2]["was_equal"], "yes");
  EXPECT_EQ(rows[2]["equal"], "no");
  EXPECT_EQ(rows[2].step, 2u);
  EXPECT_NE(rows[2].detail.find("equal until step 1"), std::string::npos) << rows[2].detail;
}

// Stages of a pipeline that were seeded alike: equal before the first update, never after.
TEST(Views, EqualBeginningsAlonePromiseNothing) {
  TwoRanks run;
  run.both(1, 1, 2, 3);
  run.both(2, 3, 4, 5);
  for (const SeenRow& row : run.rows.of("rank_parameters")) EXPECT_EQ(row["was_equal"], "no");
}

// What a collective has left alike on all ranks was meant to be: a tied embedding of two stages.
TEST(Views, WhatWasSentToAllRanksBeginsEqual) {
  for (bool exchanges : {true, false}) {
    TwoRanks run;
    for (auto [program, peer] : {std::pair(&run.first, 1), std::pair(&run.second, 0)}) {
      program->see("collective", {{"function", "broadcast"},
                                  {"group", "0-1"},
                                  {"sequence", 1},
                                  {"shape", std::vector<int>{}},
                                  {"left", Bits{1}}});
      if (exchanges)
        program->see("p2p", {{"function", peer ? "send" : "recv"}, {"peer", peer}, {"number", 0}});
    }
    run.both(1, 1, 2, 3);
    run.both(2, 3, 4, 5);
    run.both(4, 5, 6, 7);
    const auto rows = run.rows.of("rank_parameters");
    EXPECT_EQ(rows[0]["began_equal"], "no");
    EXPECT_EQ(rows[1]["began_equal"], exchanges ? "yes" : "no");
    EXPECT_EQ(rows[1]["equal"], "no");
    EXPECT_EQ(rows[2]["began_equal"], "no") << "told once";
  }
}

// An optimizer that steps with its part, and sends it to all behind the step.
TEST(Views, WhoOwnsAPartMaySendItBehindTheStep) {
  TwoRanks run;
  for (ObservedProgram* program : {&run.first, &run.second}) {
    program->see("collective", {{"function", "broadcast"},
                                {"group", "0-1"},
                                {"sequence", 1},
                                {"shape", std::vector<int>{}},
                                {"left", Bits{1}}});
    program->see("collective", {{"function", "all_reduce"},
                                {"group", "0-1"},
                                {"sequence", 2},
                                {"shape", std::vector<int>{8}}});
  }
  run.both(1, 1, 2, 1);
  run.both(2, 2, 3, 2);
  const SeenRow row = run.rows.last("rank_parameters");
  EXPECT_EQ(row["began_equal"], "yes");
  EXPECT_EQ(row["equal"], "yes");
}

// A data parallel wrapper that is made and gone around: nothing reduces the gradients.
TEST(Views, AWrapperPromisesEqualRanks) {
  TwoRanks run;
  for (ObservedProgram* program : {&run.first, &run.second})
    program->see("api", {{"name", "replicate"}, {"type", "DistributedDataParallel"}});
  run.both(1, 1, 2, 3);
  const SeenRow row = run.rows.only("rank_parameters");
  EXPECT_EQ(row["was_equal"], "yes");
  EXPECT_EQ(row["equal"], "no");
}

TEST(Views, ARankThatIsBehindIsWaitedFor) {
  TwoRanks run;
  forward(run.first);
  step(run.first, kGoodUpdate);
  EXPECT_TRUE(run.rows.of("rank_parameters").empty());
  forward(run.second);
  step(run.second, kGoodUpdate);
  EXPECT_EQ(run.rows.of("rank_parameters").size(), 1u);
}

TEST(Views, CollectivesThatDoNotMeet) {
  TwoRanks run;
  run.first.see("collective", {{"function", "all_reduce"}, {"group", "0-1"}, {"sequence", 1}});
  run.second.see("collective", {{"function", "broadcast"}, {"group", "0-1"}, {"sequence", 1}});
  run.both(1, 1, 2, 2);
  run.views.finish();
  const SeenRow row = run.rows.only("collective");
  EXPECT_EQ(row["same_call"], "no");
  EXPECT_EQ(row["same_shape"], "?");
}

TEST(Views, ALoadThatFillsNothing) {
  OneProcess run;
  run.program.see("load", {{"type", "Encoder"},
                           {"given", 6},
                           {"missing", 4},
                           {"unexpected", 6},
                           {"unlike", std::vector<std::string>{}},
                           {"own", 0},
                           {"of", "module"}});
  const SeenRow row = run.rows.only("load");
  EXPECT_EQ(row["fills_some"], "no");
  EXPECT_EQ(row["names_match"], "no");
  EXPECT_EQ(row["given_is_other"], "yes");
  EXPECT_EQ(row.detail, "4 names were not given, 6 of 6 that were given nobody takes");
}

TEST(Views, AnOptimizerThatBeginsAnewBehindItsScheduler) {
  for (bool whole : {false, true}) {
    OneProcess run;
    describe_model(run.program);
    if (whole) run.program.see("load", {{"type", "SGD"}, {"of", "optimizer"}, {"object", 0}});
    run.program.see("load", {{"of", "scheduler"}, {"place", "train.py:12:resume"}});
    forward(run.program);
    step(run.program, kGoodUpdate);
    const SeenRow row = run.rows.only("optimizer");
    EXPECT_EQ(row["rest_loaded"], "yes");
    EXPECT_EQ(row["state_loaded"], whole ? "yes" : "no");
    EXPECT_EQ(row.place, whole ? "train.py:22:main" : "train.py:12:resume");
  }
}

// Of two shapes, what a loss is told to be.
SeenRow loss_of(const std::vector<int64_t>& one, const std::vector<int64_t>& other,
                const std::string& of = "float32") {
  OneProcess run;
  run.program.see("criterion", {{"function", "mse_loss"},
                                {"inputs", std::vector<TensorValue>{{"input", "float32", one, true},
                                                                    {"target", of, other, false}}},
                                {"grad", true}});
  return run.rows.only("criterion");
}

TEST(Views, ALossThatSpreads) {
  EXPECT_EQ(loss_of({8, 1}, {8})["spreads"], "yes");
  EXPECT_EQ(loss_of({8, 1}, {8}).detail, "[8, 1] and [8]");
  EXPECT_EQ(loss_of({8, 1}, {1, 4})["spreads"], "yes");
  EXPECT_EQ(loss_of({8, 1}, {8, 1})["spreads"], "no");
  EXPECT_EQ(loss_of({8, 4}, {4})["spreads"], "no");  // as large as the one
  EXPECT_EQ(loss_of({8, 4}, {3})["spreads"], "no");  // torch refuses it
  EXPECT_EQ(loss_of({8, 1}, {8}, "int64")["spreads"], "?");
}

TEST(Views, ALossUnderAutocastOfLayersThatWereNot) {
  for (const char* autocast : {"", "bfloat16"}) {
    OneProcess run;
    describe_model(run.program);
    run.program.see("form", {{"number", 0},
                             {"training", true},
                             {"grad", true},
                             {"autocast", autocast},
                             {"inputs", std::vector<TensorValue>{{"x", "float32", {8, 4}, false}}},
                             {"outputs", std::vector<TensorValue>{{"", "float32", {8, 2}, true}}},
                             {"parameter_wants", true}});
    run.program.see("call", {{"module", 1}, {"form", 0}, {"caller", 0}});
    run.program.see("call", {{"module", 0}, {"form", 0}, {"place", "train.py:20:main"}});
    run.program.see("criterion", {{"function", "cross_entropy"},
                                  {"autocast", "bfloat16"},
                                  {"given", "probabilities"},
                                  {"fits", false},
                                  {"grad", true},
                                  {"place", "train.py:21:main"}});
    const SeenRow row = run.rows.only("criterion");
    EXPECT_EQ(row["fits"], "no");
    EXPECT_EQ(row.detail, "given probabilities");
    EXPECT_EQ(row["layers_cast"], *autocast ? "yes" : "no");
    EXPECT_EQ(row.place, *autocast ? "train.py:21:main" : "train.py:20:main");
  }
}

TEST(Views, ADropoutOfAModelThatNobodyTrains) {
  for (bool trained : {true, false}) {
    OneProcess run;
    describe_model(run.program, /*requires_grad=*/trained);
    forward(run.program);
    run.program.see("random", {{"function", "dropout"},
                               {"p", 0.25},
                               {"asked", true},
                               {"module", 1},
                               {"grad", false},
                               {"module_training", true},
                               {"place", "model.py:8:Net.forward"}});
    step(run.program, kGoodUpdate);
    const SeenRow row = run.rows.last("random");
    EXPECT_EQ(row["frozen"], trained ? "no" : "yes");
    EXPECT_EQ(row["on"], "yes");
    EXPECT_EQ(row.detail, "dropout in fc (Linear), p = 0.250");
    // Who calls what is frozen is the place.
    EXPECT_EQ(row.place, trained ? "model.py:7:Net.forward" : "train.py:20:main");
  }
}

TEST(Views, WhatWasLoadedIsInitialisedAgain) {
  OneProcess run;
  describe_model(run.program);
  run.program.see("api", {{"name", "init.normal_"},
                          {"object", 0},
                          {"flag", true},
                          {"place", "model.py:40:Net.reset"}});
  forward(run.program);
  step(run.program, kGoodUpdate);
  const SeenRow row = run.rows.only("init");
  EXPECT_EQ(row["after_load"], "yes");
  EXPECT_EQ(row.detail, "filled by normal_ after it was loaded");
}

void dropout(ObservedProgram& program, double p, uint64_t state, bool again = false) {
  program.see("random", {{"function", "dropout"},
                         {"p", p},
                         {"asked", p > 0},
                         {"module", 1},
                         {"grad", true},
                         {"place", "model.py:9:Net.forward"},
                         {"module_training", true},
                         {"state", Bits{state}},
                         {"again", again}});
}

TEST(Views, WhatIsComputedAnewDrawsTheSame) {
  OneProcess run;
  describe_model(run.program);
  dropout(run.program, 0.5, 70);
  dropout(run.program, 0.5, 70, true);
  dropout(run.program, 0.5, 71, true);
  const auto rows = run.rows.of("random");
  ASSERT_EQ(rows.size(), 3u);
  EXPECT_EQ(rows[0]["draws_same"], "?");
  EXPECT_EQ(rows[1]["draws_same"], "yes");
  EXPECT_EQ(rows[2]["draws_same"], "no");
  EXPECT_NE(rows[2].detail.find("other random numbers"), std::string::npos) << rows[2].detail;
}

TEST(Views, ADropoutThatChanges) {
  OneProcess run;
  describe_model(run.program);
  // Two of one place in the first step are both known.
  dropout(run.program, 0.5, 1);
  dropout(run.program, 0.2, 2);
  step(run.program, kGoodUpdate);
  dropout(run.program, 0.2, 3);
  dropout(run.program, 0.0, 4);
  const auto rows = run.rows.of("random");
  EXPECT_EQ(rows[0]["p_same"], "?");
  EXPECT_EQ(rows[2]["p_same"], "yes");
  EXPECT_EQ(rows[3]["p_same"], "no");
  EXPECT_NE(rows[3].detail.find("in step 0"), std::string::npos) << rows[3].detail;
}

TEST(Views, SeveralSchedulersMayStepInTurn) {
  OneProcess run;
  describe_model(run.program);
  forward(run.program);
  step(run.program, kGoodUpdate);
  run.program.see("api", {{"name", "scheduler"}, {"object", 0}});
  run.program.see("api", {{"name", "scheduler"}, {"object", 0}});
  run.program.see("api", {{"name", "scheduler"}, {"object", 1}});
  std::vector<SeenRow> told;
  for (const SeenRow& row : run.rows.of("sequence"))
    if (row["call"] == "scheduler") told.push_back(row);
  ASSERT_EQ(told.size(), 3u);
  EXPECT_EQ(told[1]["since_last:step"], "no");
  EXPECT_EQ(told[1]["several"], "no");
  EXPECT_EQ(told[2]["several"], "yes");
}

TEST(Views, LossesWithLogarithmsAreWide) {
  OneProcess run;
  const auto see = [&](const char* function, const char* dtype, SeenValue autocast) {
    run.program.see("criterion",
                    {{"function", function},
                     {"inputs", std::vector<TensorValue>{{"input", dtype, {4, 3}, true}}},
                     {"autocast", autocast},
                     {"grad", true}});
    return run.rows.of("criterion").back()["wide"];
  };
  EXPECT_EQ(see("cross_entropy", "bfloat16", {}), "no");
  EXPECT_EQ(see("cross_entropy", "bfloat16", "bfloat16"), "yes");
  EXPECT_EQ(see("cross_entropy", "float32", {}), "yes");
  EXPECT_EQ(see("mse_loss", "bfloat16", {}), "?");
}

TEST(Views, ABatchThatIsNotWhereItWasSaid) {
  for (bool batch_first : {true, false}) {
    OneProcess run;
    run.program.see("module", {{"number", 0},
                               {"name", ""},
                               {"type", "LSTM"},
                               {"library", true},
                               {"root", 0},
                               {"batch_first", batch_first}});
    run.program.see("loader", {{"number", 0}, {"batch_size", 4}, {"workers", 0}});
    run.program.see("batch", {{"loader", 0}, {"pass", 0}, {"index", 0}});
    run.program.see("form",
                    {{"number", 0},
                     {"training", true},
                     {"grad", true},
                     {"inputs", std::vector<TensorValue>{{"x", "float32", {4, 16, 8}, false}}}});
    run.program.see("call", {{"module", 0}, {"form", 0}});
    EXPECT_EQ(run.rows.only("call")["batch_where_expected"], batch_first ? "yes" : "no");
  }
}

TEST(Views, AListThatHoldsAModuleTwice) {
  OneProcess run;
  for (bool repeated : {true, false})
    run.program.see("module", {{"number", repeated ? 0 : 1},
                               {"name", repeated ? "blocks.0" : "blocks.0.fc"},
                               {"type", "Block"},
                               {"library", false},
                               {"root", 0},
                               {"repeated", repeated}});
  run.program.see("parameter", {{"number", 0},
                                {"root", 0},
                                {"name", "blocks.0.fc.weight"},
                                {"module", 1},
                                {"kind", "parameter"},
                                {"requires_grad", true},
                                {"optimizer", 0}});
  step(run.program, kGoodUpdate);
  EXPECT_EQ(run.rows.only("parameter")["repeated"], "yes");
}

TEST(Views, ASampleThatComesAgainIsToldAtOnce) {
  OneProcess run;
  run.program.see("loader", {{"number", 0}, {"type", "DataLoader"}, {"workers", 2}});
  for (int i = 0; i < 2; ++i) {
    run.program.see(
        "batch",
        {{"loader", 0}, {"pass", 0}, {"index", i}, {"rows", std::vector<Bits>{Bits{5}, Bits{6}}}});
    EXPECT_EQ(run.rows.of("epoch").size(), static_cast<size_t>(i));
  }
  EXPECT_EQ(run.rows.only("epoch")["samples_distinct"], "no");
  run.program.see("pass", {{"loader", 0}, {"pass", 0}, {"taken", 2}, {"ended", true}});
  EXPECT_EQ(run.rows.of("epoch").back()["samples_distinct"], "?") << "and once";
}

// Clipping is given a generator that the optimizer has used up: it clips nothing.
TEST(Views, WhatWasClippedIsWhatTheStepUses) {
  for (double norm : {1.0, 0.0}) {
    OneProcess run;
    describe_model(run.program);
    forward(run.program);
    run.program.see("api", {{"name", "clip_grad_norm"},
                            {"type", "norm 2"},
                            {"number", 5.0},
                            {"result", norm},
                            {"place", "train.py:21:main"}});
    run.program.see("update", {{"parameter", 0}, {"optimizer", 0}, {"value", Bits{2}}});
    run.program.see("optimizer", {{"number", 0},
                                  {"type", "SGD"},
                                  {"lr", std::vector<double>{0.1}},
                                  {"strangers", 0},
                                  {"trainable_left", 0},
                                  {"gradient_norm", 1.0}});
    const SeenRow row = run.rows.only("optimizer");
    EXPECT_EQ(row["clipped_all"], norm > 0 ? "yes" : "no");
    if (norm == 0) {
      EXPECT_EQ(row.place, "train.py:21:main");
    }
  }
}

TEST(Views, SamplesThatAreEvaluatedAndTrainedOn) {
  for (uint64_t last : {9, 3}) {
    OneProcess run;
    for (int loader : {0, 1}) {
      run.program.see("loader", {{"number", loader}, {"workers", 0}});
      std::vector<Bits> rows;
      for (uint64_t i = 0; i < 4; ++i) rows.push_back(Bits{loader == 0 ? i : 5 + i});
      if (loader == 1) rows.back() = Bits{last};
      run.program.see("batch", {{"loader", loader}, {"pass", 0}, {"index", 0}, {"rows", rows}});
      if (loader == 0) run.program.see("api", {{"name", "backward"}});
      run.program.see("pass", {{"loader", loader}, {"pass", 0}, {"taken", 1}, {"ended", true}});
    }
    EXPECT_EQ(run.rows.of("epoch").back()["apart"], last == 9 ? "yes" : "no");
  }
}

TEST(Views, RatesNormsAndRandomStatesOfRanks) {
  TwoRanks run;
  for (int k = 0; k < 3; ++k)
    for (auto [program, rank] : {std::pair(&run.first, 0), std::pair(&run.second, 1)}) {
      program->see("api", {{"name", "replicate"}, {"type", "DistributedDataParallel"}});
      program->see("api", {{"name", "clip_grad_norm"},
                           {"type", "norm 2"},
                           {"number", 1.0},
                           {"result", k == 1 && rank == 1 ? 2.0 : 3.0}});
      program->see("optimizer",
                   {{"number", 0},
                    {"type", "SGD"},
                    {"lr", std::vector<double>{k == 0 && rank == 1 ? 0.2 : 0.1}},
                    {"noise", Bits{static_cast<uint64_t>(k < 2 ? 10 * k + rank : 7)}}});
      program->end_step();
    }
  const auto rows = run.rows.of("rank_steps");
  ASSERT_EQ(rows.size(), 3u);
  EXPECT_EQ(rows[0]["same_lr"], "no");
  EXPECT_EQ(rows[0].detail, "learning rate 0.1 on rank 0, 0.2 on rank 1");
  EXPECT_EQ(rows[1]["same_lr"], "yes");
  EXPECT_EQ(rows[1]["same_clip"], "no");
  EXPECT_EQ(rows[2]["same_clip"], "yes");
  EXPECT_EQ(rows[2]["draws_apart"], "no");
}

}  // namespace
}  // namespace opguard
