// What is put where, and what a re-run proves (docs/design/proof.md), on runs written by hand.
#include "confirm/confirm.h"

#include <gtest/gtest.h>

#include <set>

#include "align/builder.h"
#include "align/pair/difference.h"
#include "confirm/causes.h"
#include "confirm/experiment.h"
#include "report/proof_text.h"

namespace opguard::test {
namespace {

E op(std::string boundary, std::vector<S> slots, Phase phase = Phase::forward,
     uint32_t micro_batch = 0) {
  return {.boundary = std::move(boundary),
          .slots = std::move(slots),
          .phase = phase,
          .micro_batch = micro_batch};
}
E loss(uint64_t value) {
  return {.boundary = "train.backward:l",
          .slots = {{SlotKind::in, value, "root0", {4, 8}, kModelValue}},
          .kind = EventKind::loss};
}

struct Setting {
  Run a, b;
  Alignment alignment = align_runs(a, b);
  Timeline timeline{a, b, alignment};
  ValueIndex index_a{a}, index_b{b};
  Verdict verdict = judge(a, b, alignment);
  ModelDifference difference =
      *compare_model_values(index_a, index_b, timeline, HiddenRecords({}, a, b)).first;

  Experiment plan(bool everywhere = true) const {
    return plan_experiment(timeline, index_a, index_b, verdict.candidates.at(0),
                           difference.position.step, everywhere);
  }
  Outcomes judged(const Experiment& experiment, LogBuilder again, const std::string& fate = "done",
                  bool cut = false) const {
    for (size_t i = 0; i < experiment.puts.size(); ++i)
      again.setting("transplant." + std::to_string(i), fate);
    const opguard::Run run = run_of({again.log()});
    return Rerun({a, b, timeline, difference, cut}, experiment, run).outcomes();
  }
  std::string text(const Experiment& experiment, const Outcomes& outcomes) const {
    return words(a, b, said(experiment, outcomes));
  }
  bool reads_the_same(const Pivot& pivot) const {
    return opguard::reads_the_same(timeline, index_a, index_b, pivot);
  }
  // was: of each value put, "same" or "other".
  std::vector<Rerun::Cause> answers(const Experiment& question, LogBuilder again,
                                    const std::vector<std::string>& was) const {
    for (size_t i = 0; i < question.puts.size(); ++i)
      again.setting("transplant." + std::to_string(i), "done")
          .setting("transplant." + std::to_string(i) + ".was", was.at(i));
    const opguard::Run run = run_of({again.log()});
    return Rerun({a, b, timeline, difference, false}, question, run).answers();
  }
};

Run run(LogBuilder builder) { return run_of({builder.log()}); }

// load -> f -> g -> f -> loss; f is what differs. `f1`, `f2`: its results; `end`: the loss.
LogBuilder chain(uint64_t f1, uint64_t g, uint64_t f2, uint64_t loaded = 1) {
  LogBuilder log;
  log.add(op("m.load:0", {out(loaded)}))
      .add(op("m.f:1", {in(loaded), out(f1)}))
      .add(op("m.g:2", {in(f1), out(g)}))
      .add(op("m.f:1", {in(g), out(f2)}))
      .add(loss(f2));
  return log;
}
Setting faulty() { return {run(chain(2, 3, 4)), run(chain(20, 30, 40))}; }

std::vector<uint32_t> events(const Experiment& experiment) {
  std::vector<uint32_t> all;
  for (const Put& put : experiment.puts) all.push_back(put.b.event);
  return all;
}

TEST(PlanExperiment, ResultsAtEveryExecutionBeforeTheLossOrAtOne) {
  const Setting s = faulty();
  EXPECT_EQ(events(s.plan()), (std::vector<uint32_t>{1, 3}));
  EXPECT_EQ(s.plan().executions, 2u);
  EXPECT_EQ(s.plan().place, Place::results);
  EXPECT_EQ(events(s.plan(/*everywhere=*/false)), std::vector<uint32_t>{1});
}

TEST(PlanExperiment, WhateverRunsInTheJudgedStep) {
  auto log = [](uint64_t f, uint64_t next) {
    LogBuilder log;
    log.add(op("m.f:1", {in(1), out(f)})).add(loss(f));
    log.add(op("m.f:1", {in(1), out(f)}, Phase::recompute, 1));
    log.add(op("m.f:1", {in(2), out(next)}, Phase::forward, 1));
    return run(log);
  };
  const Setting s{log(2, 3), log(20, 30)};
  EXPECT_EQ(events(s.plan()), (std::vector<uint32_t>{0, 2, 3}));
}

TEST(PlanExperiment, DownstreamOfAnOperatorOneRunLacks) {
  LogBuilder a, b;
  a.add(op("m.f:1", {in(1), out(2)})).add(loss(2));
  b.add(op("m.half:9", {in(1), {SlotKind::out, 10, "out0", {4, 8}, 0, "bfloat16"}}))
      .add(op("m.f:1", {{SlotKind::in, 10, "arg0", {4, 8}, 0, "bfloat16"}, out(20)}))
      .add(loss(20));
  Setting s{run(a), run(b)};
  const Experiment experiment = s.plan();
  EXPECT_EQ(experiment.place, Place::downstream);
  EXPECT_EQ(events(experiment), std::vector<uint32_t>{1});
  EXPECT_EQ(experiment.carried.size(), 1u);
  LogBuilder healed;
  healed.add(op("m.half:9", {in(1), {SlotKind::out, 10, "out0", {4, 8}, 0, "bfloat16"}}))
      .add(op("m.f:1", {{SlotKind::in, 10, "arg0", {4, 8}, 0, "bfloat16"}, out(2)}))
      .add(loss(2));
  EXPECT_EQ(s.judged(experiment, healed).effect, Effect::healed);
}

TEST(PlanExperiment, NothingToPut) {
  LogBuilder a, b;
  a.add(op("m.f:1", {in(1), out(2)})).add(loss(2));
  b.add(op("m.f:1", {in(1), {SlotKind::out, 20, "out0", {4, 9}}}))
      .add({.boundary = "train.backward:l",
            .slots = {{SlotKind::in, 20, "root0", {4, 9}, kModelValue}},
            .kind = EventKind::loss});
  const Setting s{run(a), run(b)};
  EXPECT_EQ(s.plan().refused, Refusal::unlike_results);
}

TEST(JudgeRerun, GoneIsHealedLaterIsNot) {
  const Setting s = faulty();
  const Outcomes proof = s.judged(s.plan(), chain(2, 3, 4));
  EXPECT_EQ(proof.effect, Effect::healed);
  EXPECT_EQ(
      s.text(s.plan(), proof),
      "with run a's results put in place at 2 executions, every model value of run b is run a's");

  auto two = [](uint64_t first, uint64_t second) {
    LogBuilder log = chain(first, first + 1, first + 2);
    log.add(op("m.h:3", {in(7), out(second)})).add(loss(second));
    return log;
  };
  const Setting later{run(two(2, 8)), run(two(20, 80))};
  const Outcomes moved = later.judged(later.plan(), two(2, 80));
  EXPECT_EQ(moved.effect, Effect::changed);
  EXPECT_EQ(
      later.text(later.plan(), moved),
      "with run a's results put in place at 2 executions, run b agrees with run a up to step "
      "0, micro-batch 0, where the loss differs; without, up to step 0, micro-batch 0, where the "
      "loss differs");
}

TEST(JudgeRerun, TheSameLossIsHarmless) {
  // g leaves the same whatever f does.
  Setting s = faulty();
  LogBuilder again = chain(2, 30, 40);
  const Experiment once = s.plan(/*everywhere=*/false);
  EXPECT_EQ(s.judged(once, again).effect, Effect::unchanged);
}

TEST(JudgeRerun, OneOfSeveralCauses) {
  // Another value of the loss, and still not run a's.
  const Setting s = faulty();
  const Outcomes proof = s.judged(s.plan(/*everywhere=*/false), chain(2, 3, 41));
  EXPECT_EQ(proof.effect, Effect::changed);
  EXPECT_FALSE(proof.with || proof.without);
}

TEST(JudgeRerun, WhatWasNotPutProvesNothing) {
  Setting s = faulty();
  EXPECT_EQ(s.judged(s.plan(), chain(2, 3, 4), "it is inside a compiled graph").effect,
            Effect::unknown);
  const Outcomes proof = s.judged(s.plan(), chain(2, 3, 4), "not reached");
  EXPECT_EQ(proof.effect, Effect::unknown);
  EXPECT_EQ(proof.obstacle.kind, Hindrance::not_put);
  EXPECT_EQ(s.text(s.plan(), proof),
            "the value could not be put in place: the re-run did not reach it");
}

TEST(JudgeRerun, ARunThatDoesNotRepeatItselfProvesNothing) {
  Setting s = faulty();
  const Outcomes proof = s.judged(s.plan(), chain(2, 3, 4, /*loaded=*/99));
  EXPECT_EQ(proof.effect, Effect::unknown);
  EXPECT_TRUE(proof.obstacle.unrepeated());
  EXPECT_EQ(proof.obstacle.kind, Hindrance::other_value_before);
  EXPECT_NE(s.text(s.plan(), proof).find("run b does not repeat itself: m.load"),
            std::string::npos);
}

TEST(JudgeRerun, AGeneratorNobodyDrawsFromMayBeginAnew) {
  auto with_state = [](uint64_t state, uint64_t f) {
    LogBuilder log;
    log.add({.boundary = "<state>", .slots = {in(state, "python")}, .kind = EventKind::state});
    log.add(op("m.f:1", {in(1), out(f)})).add(loss(f));
    return log;
  };
  Setting s{run(with_state(7, 2)), run(with_state(8, 20))};
  EXPECT_EQ(s.judged(s.plan(), with_state(9, 2)).effect, Effect::healed);
}

TEST(JudgeRerun, AnotherDifferenceHealedOnTheWayProvesNothing) {
  // The second execution reads 31 where run a read 3, and is given run a's result all the same.
  Setting s = faulty();
  const Outcomes proof = s.judged(s.plan(), chain(2, 31, 4));
  EXPECT_EQ(proof.effect, Effect::unknown);
  EXPECT_EQ(proof.obstacle.kind, Hindrance::other_inputs);
}

TEST(JudgeRerun, ARunThatWasEndedEarlyLacksNothing) {
  auto log = [](uint64_t f, bool whole) {
    LogBuilder log;
    log.add(op("m.f:1", {in(1), out(f)})).add(loss(f));
    E later = loss(9);
    later.step = 1;
    if (whole) log.add(later);
    return log;
  };
  const Setting s{run(log(2, true)), run(log(20, true))};
  EXPECT_EQ(s.judged(s.plan(), log(2, false), "done", /*cut=*/true).effect, Effect::healed);
  // One that did not even come to the value that differed has healed nothing.
  LogBuilder none;
  none.add(op("m.f:1", {in(1), out(2)}));
  EXPECT_EQ(s.judged(s.plan(), none, "done", /*cut=*/true).effect, Effect::unknown);
}

TEST(ReadsTheSame, WhatOnlyFollowsDoesNot) {
  const Setting s = faulty();
  EXPECT_TRUE(s.reads_the_same({PivotKind::value, {0, 1}, {0, 1}, kNone}));
  EXPECT_FALSE(s.reads_the_same({PivotKind::value, {0, 2}, {0, 2}, kNone}));  // g
}

TEST(ReadsTheSame, AnOperatorOfRunAAlone) {
  LogBuilder a, b;
  a.add(op("m.half:9", {in(1), out(10)})).add(op("m.f:1", {in(10), out(20)})).add(loss(20));
  b.add(op("m.load:0", {in(1)})).add(op("m.f:1", {in(1), out(2)})).add(loss(2));
  const Setting s{run(a), run(b)};
  EXPECT_TRUE(s.reads_the_same({PivotKind::structure, {0, 0}, {}, kNone}));
  EXPECT_FALSE(s.reads_the_same({PivotKind::structure, {0, 1}, {}, kNone}));
}

TEST(NextCandidates, WhatIsLeftReadsTheSameOnceTheFirstIsForced) {
  // f and h are both causes: h reads what f left.
  auto log = [](uint64_t f, uint64_t h) {
    LogBuilder log;
    log.add(op("m.f:1", {in(1), out(f)})).add(op("m.h:2", {in(f), out(h)})).add(loss(h));
    return log;
  };
  const Setting s{run(log(2, 3)), run(log(20, 30))};
  EXPECT_FALSE(s.reads_the_same({PivotKind::value, {0, 1}, {0, 1}, kNone}));
  LogBuilder again = log(2, 31);
  again.setting("transplant.0", "done");
  const opguard::Run forced = run_of({again.log()});
  const Experiment first = s.plan();
  const auto next =
      Rerun({s.a, s.b, s.timeline, s.difference, false}, first, forced).next_candidates();
  ASSERT_EQ(next.size(), 1u);
  EXPECT_EQ(next[0].pivot.b, (EventRef{0, 1}));
  EXPECT_TRUE(next[0].reads_the_same);
}

TEST(Answers, OneMakesAnotherResultAndTheRestFollow) {
  const Setting s = faulty();
  const Experiment question = plan_question(s.timeline, 0);
  ASSERT_EQ(events(question), (std::vector<uint32_t>{1, 2, 3}));
  // f leaves another result of 1; g leaves run a's of run a's; the second f again another.
  const auto causes = s.answers(question, chain(2, 3, 4), {"other", "same", "other"});
  ASSERT_EQ(causes.size(), 1u);
  EXPECT_EQ(causes[0].pivot.b, (EventRef{0, 1}));
  EXPECT_EQ(causes[0].pivot.kind, PivotKind::value);
  EXPECT_EQ(events(causes[0].forced), (std::vector<uint32_t>{1, 3}));
}

TEST(Answers, NoneWhereEachLeavesTheSameOfTheSame) {
  const Setting s = faulty();
  const Experiment question = plan_question(s.timeline, 0);
  EXPECT_TRUE(s.answers(question, chain(2, 3, 4), {"same", "same", "same"}).empty());
}

TEST(Answers, TheRegionOfOneRunAloneBegins) {
  // a: x -> g; b: x -> half -> double -> g. g reads what only b makes.
  LogBuilder a, b;
  a.add(op("m.load:0", {out(1)})).add(op("m.g:2", {in(1), out(3)})).add(loss(3));
  auto of_b = [](uint64_t g) {
    LogBuilder log;
    log.add(op("m.load:0", {out(1)}))
        .add(op("m.half:8", {in(1), out(10)}))
        .add(op("m.twice:9", {in(10), out(11)}))
        .add(op("m.g:2", {in(11), out(g)}))
        .add(loss(g));
    return log;
  };
  const Setting s{run(a), run(of_b(30))};
  const Experiment question = plan_question(s.timeline, 0);
  ASSERT_EQ(events(question), (std::vector<uint32_t>{3}));
  const auto causes = s.answers(question, of_b(3), {"other"});
  ASSERT_EQ(causes.size(), 1u);
  EXPECT_EQ(causes[0].pivot.b, (EventRef{0, 1})) << "the operator that begins the region";
  EXPECT_EQ(causes[0].pivot.kind, PivotKind::structure);
  // What the region leaves differs when its end is forced, and that is expected.
  EXPECT_EQ(s.judged(causes[0].forced, of_b(3)).effect, Effect::healed);
}

// Here view reads the sum of what its two readers send back, which autograd adds up below Python.
// Of b the second reader is another operator, so the region begins at its node.
TEST(Answers, ASumOfGradientsComesFromTheNodesThatSentThem) {
  auto log = [](const std::string& second, uint64_t sent, uint64_t sum) {
    LogBuilder log;
    log.add(op("m.view:0", {in(1), out(2)}))
        .add(op("m.f:1", {in(2), out(3)}))
        .add(op(second, {in(2), out(4)}))
        .add(loss(4));
    auto node = [&](const std::string& boundary, uint64_t grad, uint64_t out_grad,
                    uint32_t forward) {
      E e = op(boundary, {in(grad, "grad0"), out(out_grad)}, Phase::backward);
      e.kind = EventKind::node;
      e.node = "Backward0";
      log.add(e);
      log.log().events.edit().back().forward = forward;
    };
    node(second, 9, sent, 2);
    node("m.f:1", 9, 11, 1);
    node("m.view:0", sum, sum + 1, 0);
    log.add({.boundary = "train.step:o",
             .slots = {{SlotKind::out, sum + 1, "param0", {4, 8}, kModelValue}},
             .phase = Phase::optimizer,
             .kind = EventKind::optimizer});
    return log;
  };
  const Setting s{run(log("m.g:2", 10, 20)), run(log("m.h:3", 100, 200))};
  const Experiment question = plan_question(s.timeline, 0);
  size_t view = 0;
  std::vector<std::string> was(question.puts.size(), "same");
  while (question.puts[view].b.event != 6) ASSERT_LT(++view, question.puts.size());
  was[view] = "other";
  const auto causes = s.answers(question, log("m.h:3", 100, 200), was);
  ASSERT_EQ(causes.size(), 1u);
  EXPECT_EQ(causes[0].pivot.kind, PivotKind::structure);
  EXPECT_EQ(causes[0].pivot.a, (EventRef{0, 4}));
  EXPECT_EQ(causes[0].pivot.b, (EventRef{0, 4}));
}

// f and h are both causes; g, between them, only follows.
TEST(Answers, TheRunThatAsksIsTheOneInWhichTheCausesAreForced) {
  auto log = [](uint64_t f, uint64_t g, uint64_t h) {
    LogBuilder log;
    log.add(op("m.f:1", {in(1), out(f)}))
        .add(op("m.g:2", {in(f), out(g)}))
        .add(op("m.h:3", {in(g), out(h)}))
        .add(loss(h));
    return log;
  };
  const Setting s{run(log(2, 3, 4)), run(log(20, 30, 40))};
  const Experiment question = plan_question(s.timeline, 0);
  ASSERT_EQ(events(question), (std::vector<uint32_t>{0, 1, 2}));
  auto again = [&](LogBuilder builder, std::vector<std::string> was) {
    for (size_t i = 0; i < was.size(); ++i)
      builder.setting("transplant." + std::to_string(i), "done")
          .setting("transplant." + std::to_string(i) + ".was", was[i]);
    return run_of({builder.log()});
  };
  const opguard::Run asked = again(log(2, 3, 4), {"other", "same", "other"});
  const Rerun rerun({s.a, s.b, s.timeline, s.difference, false}, question, asked);
  const auto causes = rerun.answers();
  ASSERT_EQ(causes.size(), 2u);
  EXPECT_EQ(causes[0].pivot.b, (EventRef{0, 0}));
  EXPECT_EQ(causes[1].pivot.b, (EventRef{0, 2}));
  Experiment forced = causes[0].forced;
  forced.add(causes[1].forced);
  EXPECT_EQ(rerun.outcomes(forced).effect, Effect::healed);
  EXPECT_EQ(rerun.asked().same, 1u);
  EXPECT_EQ(rerun.asked().other, 2u);
  EXPECT_EQ(rerun.asked().not_reached, 0u);
  // Not where a model value still differs.
  const opguard::Run other = again(log(2, 3, 41), {"other", "same", "other"});
  EXPECT_EQ(
      Rerun({s.a, s.b, s.timeline, s.difference, false}, question, other).outcomes(forced).effect,
      Effect::changed);
}

TEST(SeenCauses, WhatReadsTheSameAndLeavesAnotherResult) {
  const Setting s = faulty();  // f twice; the second reads what the first left
  EXPECT_EQ(seen_causes(s.timeline, 0), (std::vector<EventRef>{{0, 1}}));
  const Setting load{run(chain(2, 3, 4, 1)), run(chain(20, 30, 40, 10))};
  EXPECT_EQ(seen_causes(load.timeline, 0), (std::vector<EventRef>{{0, 0}})) << "not f, it follows";
}

TEST(JudgeRerun, WhatIsAnotherValueEachTimeIsProvenByHealing) {
  Setting s = faulty();
  const Experiment once = s.plan();
  auto held = [&](uint64_t value, LogBuilder again) {
    const LogBuilder left = chain(value, 3, 4);
    const ProcessLog log = LogBuilder(left).log();
    again.setting("transplant.0.held", fingerprint_text(log.slots[once.puts[0].slot_b]));
    return again;
  };
  const Outcomes repeated = s.judged(once, held(20, chain(2, 3, 4)));
  EXPECT_EQ(repeated.effect, Effect::healed);
  EXPECT_FALSE(repeated.obstacle);
  const Outcomes chance = s.judged(once, held(21, chain(2, 3, 4)));
  EXPECT_EQ(chance.effect, Effect::healed);
  EXPECT_EQ(chance.obstacle.kind, Hindrance::other_value);
  // That something still differs could be chance as well.
  EXPECT_EQ(s.judged(once, held(21, chain(2, 3, 41))).effect, Effect::unknown);
}

TEST(FirstUnrepeated, InTheOrderOfTheRun) {
  const Setting s = faulty();
  const opguard::Run same = run(chain(20, 30, 40)), other = run(chain(20, 31, 41));
  EXPECT_FALSE(first_unrepeated(s.b, same, s.timeline, 1, 0));
  const Obstacle found = first_unrepeated(s.b, other, s.timeline, 1, 0);
  EXPECT_EQ(found.kind, Hindrance::other_value);
  EXPECT_EQ(found.event, (EventRef{0, 2}));
}

TEST(FirstChanged, NothingCameOfTheValueOrSomethingDid) {
  const Setting s = faulty();
  EXPECT_FALSE(first_changed(s.a, run(chain(20, 3, 4)), 0, false));
  EXPECT_TRUE(first_changed(s.a, run(chain(20, 30, 40)), 0, false));
}

// A mask that dropout keeps stands in no log: what was recomputed reaches its backward all the
// same.
TEST(Reaches, TheBackwardOfWhatWasRecomputed) {
  auto log = [](uint64_t recomputed, uint64_t gradient) {
    LogBuilder log;
    log.add(loss(7));
    log.add(op("m.dropout:1", {in(1), out(recomputed)}, Phase::recompute));
    for (const char* boundary : {"m.dropout:1", "m.other:2"}) {
      E node = op(boundary, {in(9, "grad0"), out(gradient)}, Phase::backward);
      node.kind = EventKind::node;
      node.node = "MulBackward0";
      log.add(node);
      if (boundary == std::string("m.other:2")) break;
      log.add({.boundary = "train.step:o",
               .slots = {{SlotKind::out, gradient, "param0", {4, 8}, kModelValue}},
               .phase = Phase::optimizer,
               .kind = EventKind::optimizer});
      gradient = 8;
    }
    return run(log);
  };
  Setting s{log(2, 3), log(20, 30)};
  const Pivot recomputed{PivotKind::value, {0, 1}, {0, 1}, kNone};
  EXPECT_TRUE(reaches(s.timeline, recomputed, s.difference));
  // The other operator's does not read it.
  const SlotRef other{{0, 4}, s.a.processes[0].events[4].first_slot + 1};
  s.difference.slots[0] = s.difference.slots[1] = {other};
  EXPECT_FALSE(reaches(s.timeline, recomputed, s.difference));
}

TEST(Reaches, AlongValuesOnly) {
  auto log = [](uint64_t logged, uint64_t f) {
    LogBuilder log;
    log.add(op("m.log:0", {in(1), out(logged)}))
        .add(op("m.f:1", {in(1), out(f)}))
        .add(op("m.g:2", {in(f), out(f + 1)}))
        .add(loss(f + 1));
    return run(log);
  };
  const Setting s{log(5, 2), log(50, 20)};
  EXPECT_FALSE(reaches(s.timeline, {PivotKind::value, {0, 0}, {0, 0}, kNone}, s.difference));
  EXPECT_TRUE(reaches(s.timeline, {PivotKind::value, {0, 1}, {0, 1}, kNone}, s.difference));
}

// A buffer of `empty` is written in two halves: after the first the runs hold other bytes, after
// the second the same. Of another first half something is left.
TEST(Reaches, NotThroughWhatCameOutTheSame) {
  auto log = [](uint64_t half, uint64_t whole, uint64_t f) {
    LogBuilder log;
    log.add(op("m.half:0", {in(1), out(half)}))
        .add(op("m.whole:1", {in(half), out(whole)}))
        .add(op("m.f:2", {in(whole), out(f)}))
        .add(loss(f));
    return run(log);
  };
  const Pivot half{PivotKind::value, {0, 0}, {0, 0}, kNone};
  const Setting filled{log(5, 6, 2), log(50, 6, 20)};
  EXPECT_FALSE(reaches(filled.timeline, half, filled.difference));
  const Setting left{log(5, 6, 2), log(50, 60, 20)};
  EXPECT_TRUE(reaches(left.timeline, half, left.difference));
}

TEST(Repeats, TheSameEventOfAnotherRun) {
  const opguard::Run first = run(chain(2, 3, 4)), same = run(chain(2, 3, 4)),
                     other = run(chain(2, 3, 5));
  EXPECT_EQ(Again(same).repeats(first, {0, 3}), Repeat::same);
  EXPECT_EQ(Again(other).repeats(first, {0, 3}), Repeat::other_values);
}

TEST(SelectionOf, NamesThatASelectionCanHold) {
  for (const std::string boundary : {"m.f:1", "<optimizer.step>", "a@3:b", "a,kind=op"}) {
    LogBuilder log;
    log.add(op(boundary, {in(1), out(2)}));
    const std::string text = selection_of(run_of({log.log()}), {0, 0}, "out/out0");
    if (boundary[0] == 'm')
      EXPECT_EQ(text, "m.f:1@0:out/out0,kind=op,phase=forward,rank=0");
    else if (boundary[0] == '<')
      EXPECT_FALSE(text.empty());
    else
      EXPECT_EQ(text, "");
  }
}

TEST(SelectionOf, OneOfSeveralProcessesOfARank) {
  LogBuilder log;
  log.add(op("m.f:1", {in(1), out(2)}));
  EXPECT_EQ(selection_of(run_of({log.log(), log.log()}), {1, 0}, ""),
            "m.f:1@0,kind=op,phase=forward,rank=0,process=1");
}

// A trial a site; what each cause is beside the other is read off the runs that were made.
TEST(Causes, NeedOfEachOfTwo) {
  const Setting s = faulty();
  Trials trials(s.timeline, s.index_a, s.index_b);
  trials.judge_step(s.difference.position.step);
  for (uint32_t event : {1u, 2u, 3u}) trials.add({PivotKind::value, {0, event}, {0, event}});
  ASSERT_EQ(trials.size(), 2u);  // f, which runs twice, and g
  EXPECT_TRUE(trials[0].eligible);
  EXPECT_EQ(trials[1].found.why.kind, ProofReasonKind::follows);
  EXPECT_EQ(trials.next(), 0u);

  Causes causes(trials);
  causes.add(1, ProofState::indicated, true);
  EXPECT_EQ(causes.need_of(1), Need::only);
  causes.add(0, ProofState::proven, false);
  causes.add(1, ProofState::proven, false);
  ASSERT_EQ(causes.all().size(), 2u);
  EXPECT_EQ(causes.first(), 0u);
  causes.sort();
  EXPECT_EQ(causes.all()[1].first, 1u);
  EXPECT_TRUE(causes.all()[1].second.measured);
  EXPECT_EQ(causes.all()[1].second.state, ProofState::proven);

  EXPECT_EQ(causes.need_of(0), Need::unasked);
  trials[0].alone = Effect::changed;
  EXPECT_EQ(causes.need_of(0), Need::acts);
  EXPECT_EQ(causes.need_of(1), Need::left_out);  // with f alone as in run a the runs part
  trials[0].left_out = true;
  EXPECT_EQ(causes.need_of(0), Need::left_out);
}

// The draw that was measured stands for what moved the generator, also where it is the next
// candidate itself.
TEST(Trials, ADrawIsItsGeneratorsMovers) {
  const Setting s = faulty();
  Trials trials(s.timeline, s.index_a, s.index_b);
  trials.judge_step(s.difference.position.step);
  const Pivot drawn{PivotKind::value, {0, 1}, {0, 1}};
  Pivot mover{PivotKind::input, {}, {0, 0}};
  mover.shown[0] = drawn.a, mover.shown[1] = drawn.b;
  trials.add(mover);
  trials.add(drawn);
  ASSERT_EQ(trials.size(), 2u);
  EXPECT_EQ(trials.index(trials.of(drawn)), 0u);
  // Another operator is itself.
  EXPECT_EQ(trials.index(trials.of({PivotKind::value, {0, 2}, {0, 2}})), 2u);
}

// The node that reads a sum is forced for the order in which it was added, by what it reads.
TEST(Trials, ASumShowsAtItsReader) {
  const Setting s{run(chain(2, 3, 4)), run(chain(20, 30, 40, /*loaded=*/10))};
  Trials trials(s.timeline, s.index_a, s.index_b);
  trials.judge_step(s.difference.position.step);
  Pivot order{PivotKind::input, {0, 2}, {0, 2}};
  order.shown = {EventRef{0, 1}, EventRef{0, 1}};
  order.shown_as = PivotKind::input;
  EXPECT_NE(trials.add(order).experiment.place, Place::draws);
  EXPECT_EQ(trials.index(trials.of({PivotKind::input, {0, 1}, {0, 1}})), 0u);
  EXPECT_EQ(trials.index(trials.of({PivotKind::value, {0, 0}, {0, 0}})), 1u);
}

// b leaves `normal_` out: whatever is drawn after it is other numbers, and its doing. What draws
// nothing is not.
TEST(Trials, ADrawBehindOneThatOneRunAloneMakesIsItsDoing) {
  auto log = [](bool first, uint64_t n) {
    LogBuilder log;
    if (first)
      log.add(op("m.normal_:0", {out(9)})).at("m.normal_:0", {.callee = "nn.init.normal_"});
    log.add(op("m.dropout:1", {in(1), out(2 + n)})).at("m.dropout:1", {.callee = "F.dropout"});
    log.add(op("m.mul:2", {in(2 + n), out(3 + n)})).add(loss(3 + n));
    return log;
  };
  const Setting s{run(log(true, 0)), run(log(false, 10))};
  Trials trials(s.timeline, s.index_a, s.index_b);
  trials.judge_step(s.difference.position.step);
  trials.add({PivotKind::structure, {0, 0}, {}});
  EXPECT_EQ(trials.index(trials.of({PivotKind::value, {0, 1}, {0, 0}})), 0u);
  EXPECT_EQ(trials.index(trials.of({PivotKind::value, {0, 2}, {0, 1}})), 1u);
}

// A ring of two buffers, filled by another thread: `mask` is the first use, `embed` saw other
// bytes. In the run that asks, `rope` sees them too, in the other buffer. It is the same race.
TEST(Trials, AReaderOfARacesMemoryIsTheRace) {
  auto lies = [](S slot, uint32_t storage) { return slot.storage = storage, slot; };
  auto log = [&](uint64_t ids, uint64_t positions, uint64_t table) {
    LogBuilder log;
    for (uint32_t ring : {7u, 9u}) {
      log.add(op("l.unbind", {lies(in(50 + ring), ring), lies(out(ring), ring)}))
          .add(op("m.mask", {lies(in(ring), ring), lies(out(20 + ring), 30 + ring)}))
          .add(op("m.embed", {lies(in(ring == 7 ? ids : ring), ring), lies(in(3), 60),
                              lies(out(ids + ring), 40 + ring)}))
          .add(op("m.rope", {lies(in(positions), ring), lies(out(positions + ring), 50 + ring)}))
          .add(op("m.table", {lies(in(table), 60), lies(out(70 + table), 61)}));
    }
    return run(log.add(loss(ids + positions + table)));
  };
  const Setting s{log(100, 200, 300), log(101, 201, 301)};
  Trials trials(s.timeline, s.index_a, s.index_b);
  trials.judge_step(s.difference.position.step);
  Pivot race{PivotKind::race, {0, 1}, {0, 1}};
  race.shown = {EventRef{0, 2}, EventRef{0, 2}};
  race.shown_as = PivotKind::race;
  trials.add(race);
  EXPECT_EQ(trials.index(trials.of({PivotKind::input, {0, 2}, {0, 2}})), 0u);
  EXPECT_EQ(trials.index(trials.of({PivotKind::input, {0, 8}, {0, 8}})), 0u);
  // What both runs hold alike is no memory of the race, whoever else reads it.
  EXPECT_EQ(trials.index(trials.of({PivotKind::input, {0, 4}, {0, 4}})), 1u);
  // An operator that leaves another result of what it read is to blame itself.
  EXPECT_EQ(trials.index(trials.of({PivotKind::value, {0, 3}, {0, 3}})), 2u);
}

TEST(ProofReason, EachKindIsWorded) {
  const Setting s = faulty();
  ProofReason reason;
  EXPECT_EQ(words(s.a, s.b, reason), "");
  EXPECT_EQ(words(s.a, s.b, refused(s.plan())), "");
  reason.refusal = Refusal::too_often;
  reason.event = {0, 0};
  reason.error = "b ends with exit code 3";
  reason.outcomes.obstacle.kind = Hindrance::not_reached;
  reason.found = {{ReasonKind::measured_unmade}};
  std::set<std::string> sentences;
  for (auto kind = ProofReasonKind::nothing_to_heal; kind <= ProofReasonKind::left_out;
       kind = static_cast<ProofReasonKind>(static_cast<int>(kind) + 1)) {
    reason.kind = kind;
    sentences.insert(words(s.a, s.b, reason));
  }
  EXPECT_FALSE(sentences.contains(""));
  for (const char* sentence :
       {"it runs too often to be made good everywhere",
        "what was found read other values than run a's, and it runs too often to be made good "
        "everywhere",
        "with run a's values in place, b ends with exit code 3",
        "the re-run did not come to the value that differs",
        "measured: it reads what nobody recorded made, and leaves another result"})
    EXPECT_TRUE(sentences.contains(sentence)) << sentence;
}

TEST(ProofReason, PlacesOfTextAreNamedUpToThree) {
  const std::vector<TextPlace> all = {
      {"a.py", 3, 3}, {"a.py", 7, 9}, {"b.py", 1, 2}, {"c.py", 5, 5}};
  EXPECT_EQ(words(std::vector<TextPlace>{all[0]}), "a.py:3");
  EXPECT_EQ(words(all), "a.py:3, a.py:7-9, b.py:1-2 and 1 more");
}

}  // namespace
}  // namespace opguard::test
