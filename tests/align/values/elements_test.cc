// One model in other pieces: which sums say that its elements are the same, or others.
#include "align/values/elements.h"

#include <gtest/gtest.h>

#include "align/builder.h"
#include "align/judge/verdict.h"

namespace opguard::test {
namespace {

struct Piece {
  uint64_t digest;
  int64_t elements;
  std::string name = "0";
  std::string dtype = "float32";
};

// One step of an optimizer: the pieces before it and after it.
LogBuilder rank(int32_t number, const std::vector<Piece>& before, const std::vector<Piece>& after) {
  auto slot = [](const Piece& piece, const std::string& kind, SlotKind way, uint8_t flags) {
    // The value: no two pieces share one unless they are copies.
    S made{way,
           piece.digest * 100 + uint64_t(piece.elements),
           kind + piece.name,
           {piece.elements},
           flags,
           piece.dtype};
    made.digest = piece.digest;
    return made;
  };
  E step{.boundary = "o", .slots = {}, .phase = Phase::optimizer, .kind = EventKind::optimizer};
  for (const Piece& piece : before) step.slots.push_back(slot(piece, "param", SlotKind::in, 0));
  for (const Piece& piece : after)
    step.slots.push_back(slot(piece, "param", SlotKind::out, kModelValue));
  E loss{.boundary = "l", .slots = {in(5, "root0")}, .phase = Phase::backward};
  loss.kind = EventKind::loss, loss.slots[0].flags = kModelValue;
  return LogBuilder(number).add(loss).add(step);
}

Verdict verdict(std::vector<LogBuilder> a, std::vector<LogBuilder> b) {
  auto run = [](std::vector<LogBuilder>& logs) {
    std::vector<ProcessLog> processes;
    for (LogBuilder& log : logs) processes.push_back(log.log());
    return run_of(std::move(processes));
  };
  const opguard::Run run_a = run(a), run_b = run(b);
  return judge(run_a, run_b, align_runs(run_a, run_b));
}

const std::vector<Piece> kBefore = {{10, 3, "0"}, {20, 5, "1"}},
                         kAfter = {{11, 3, "0"}, {22, 5, "1"}};

TEST(ElementSums, AFlatBufferWithPadding) {
  EXPECT_EQ(verdict({rank(0, kBefore, kAfter)}, {rank(0, {{30, 16}}, {{33, 16}})}).outcome,
            Outcome::identical);
  const Verdict other = verdict({rank(0, kBefore, kAfter)}, {rank(0, {{30, 16}}, {{34, 16}})});
  EXPECT_EQ(other.outcome, Outcome::diverged);
  EXPECT_EQ(other.why, (Reasons{{ReasonKind::parameters_differ}}));
}

TEST(ElementSums, CopiesOnEachRankAgainstShares) {
  const std::vector<LogBuilder> copies = {rank(0, kBefore, kAfter), rank(1, kBefore, kAfter)};
  auto shares = [](uint64_t last) {
    return std::vector<LogBuilder>{rank(0, {{12, 4}}, {{14, 4}}), rank(1, {{18, 4}}, {{last, 4}})};
  };
  EXPECT_EQ(verdict(copies, shares(19)).outcome, Outcome::identical);
  EXPECT_EQ(verdict(copies, shares(20)).outcome, Outcome::diverged);
}

// Some of the shares are alike: they are not taken for copies of one.
TEST(ElementSums, SharesThatAreEqualByChance) {
  const std::vector<LogBuilder> copies = {rank(0, {{10, 8}}, {{14, 8}}),
                                          rank(1, {{10, 8}}, {{14, 8}})};
  EXPECT_EQ(verdict(copies, {rank(0, {{5, 4}}, {{7, 4}}), rank(1, {{5, 4}}, {{7, 4}})}).outcome,
            Outcome::identical);
}

// Shares of tensor parallelism beside copies of what is not cut.
TEST(ElementSums, SharesBesideCopies) {
  const std::vector<LogBuilder> alone = {rank(0, kBefore, kAfter)};
  const std::vector<LogBuilder> ranks = {
      rank(0, {{4, 2, "0"}, {20, 5, "1"}}, {{5, 2, "0"}, {22, 5, "1"}}),
      rank(1, {{6, 1, "0"}, {20, 5, "1"}}, {{6, 1, "0"}, {22, 5, "1"}})};
  EXPECT_EQ(verdict(alone, ranks).outcome, Outcome::identical);
}

// Never equal, so nothing says that these pieces are the other run's: master weights of another
// type, a rank whose log is missing.
TEST(ElementSums, WhatWasNeverEqualIsNoDifference) {
  const Verdict missing = verdict({rank(0, kBefore, kAfter)}, {rank(0, {{12, 4}}, {{14, 4}})});
  EXPECT_EQ(missing.outcome, Outcome::inconclusive);
  EXPECT_TRUE(says(missing.why, ReasonKind::element_sums_differ));
  const Verdict rounded =
      verdict({rank(0, kBefore, kAfter)},
              {rank(0, {{30, 8, "0", "bfloat16"}}, {{34, 8, "0", "bfloat16"}})});
  EXPECT_EQ(rounded.outcome, Outcome::inconclusive);
  EXPECT_TRUE(
      says(rounded.why, {.kind = ReasonKind::other_types, .names = {"float32", "bfloat16"}}));
}

TEST(ElementSums, GradientsAndStateInOtherPiecesAreToldToo) {
  auto with = [](LogBuilder log, std::vector<std::pair<uint64_t, std::string>> more) {
    E step{.boundary = "o", .slots = {}, .phase = Phase::optimizer, .kind = EventKind::optimizer};
    for (const auto& [digest, name] : more) {
      const bool gradient = name.starts_with("grad");
      S slot{gradient ? SlotKind::in : SlotKind::out,
             7000 + digest,
             name,
             {int64_t(digest)},
             uint8_t(gradient ? kModelValue : 0)};
      slot.digest = digest;
      step.slots.push_back(slot);
    }
    return log.add(step);
  };
  auto judged = [&](uint64_t gradient, uint64_t average, const std::string& kind) {
    return verdict({with(rank(0, kBefore, kAfter),
                         {{2, "grad0"}, {3, "grad1"}, {4, "state0.avg"}, {6, "state1.avg"}})},
                   {with(rank(0, {{30, 16}}, {{33, 16}}),
                         {{gradient, "grad0"}, {average, "state0." + kind}})});
  };
  EXPECT_EQ(judged(5, 10, "avg").outcome, Outcome::identical);
  const Verdict scaled = judged(9, 10, "avg");
  EXPECT_EQ(scaled.outcome, Outcome::inconclusive);
  EXPECT_TRUE(says(scaled.why, {.kind = ReasonKind::gradients_unlike, .numbers = {1, 1}}));
  EXPECT_TRUE(says(judged(5, 11, "avg").why,
                   {.kind = ReasonKind::state_unlike, .numbers = {1, 1}, .names = {"avg"}}));
  EXPECT_TRUE(
      says(judged(5, 10, "mean").why, {.kind = ReasonKind::state_names, .names = {"avg", "mean"}}));
}

}  // namespace
}  // namespace opguard::test
