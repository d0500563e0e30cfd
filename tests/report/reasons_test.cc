// The wording of every reason, in one file to review: tests/fixtures/report/reasons/expected.txt.
// OPGUARD_UPDATE=1 in the environment rewrites it.
#include "report/reasons.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <sstream>

#include "align/builder.h"
#include "align/judge/verdict.h"

namespace opguard::test {
namespace {

const std::string kExpected = std::string(OPGUARD_FIXTURES) + "/report/reasons/expected.txt";

// Two operators of one place each.
opguard::Run run_named(const std::string& side) {
  LogBuilder log;
  for (const char* name : {"first", "second"}) {
    Location place;
    place.file = side + ".py", place.line = 7, place.callee = name;
    log.at(std::string("m.") + name, place);
    log.add({std::string("m.") + name, {in(1), out(2)}});
  }
  return run_of({log.log()}, side);
}

Reason with_operands(ReasonKind kind, uint64_t number) {
  return {.kind = kind,
          .side = 1,
          .numbers = {number, number + 1, number + 2},
          .names = {"NAME0", "NAME1", "NAME2"},
          .events = {EventRef{0, 0}, EventRef{0, 1}},
          .slots = {0, 3},
          .pivot = PivotKind::scalar};
}

TEST(Reasons, TheWordingOfEach) {
  const opguard::Run a = run_named("a"), b = run_named("b");
  std::string all;
  for (int kind = 0; kind <= int(ReasonKind::number_from_noise); ++kind) {
    const std::string one = words(a, b, with_operands(ReasonKind(kind), 1)),
                      more = words(a, b, with_operands(ReasonKind(kind), 2000));
    EXPECT_FALSE(one.empty()) << kind;
    all += one + "\n";
    if (more != one) all += "  " + more + "\n";
  }
  if (std::getenv("OPGUARD_UPDATE")) std::ofstream(kExpected, std::ios::binary) << all;
  std::ifstream file(kExpected, std::ios::binary);
  std::ostringstream expected;
  expected << file.rdbuf();
  EXPECT_EQ(all, expected.str());
}

TEST(Reasons, AreJoinedToASentence) {
  const opguard::Run a = run_named("a"), b = run_named("b");
  auto said = [&](const Reasons& reasons) { return words(a, b, reasons); };
  EXPECT_EQ(said({}), "");
  EXPECT_EQ(
      said({{ReasonKind::all_agree},
            {.kind = ReasonKind::unreached, .numbers = {2}},
            {.kind = ReasonKind::hidden_differ, .numbers = {3}}}),
      "every model value of the two runs agrees; 2 pairs differ and reach none of it, but for "
      "3 differing that rules hide");
  EXPECT_EQ(said({{ReasonKind::rest_agrees},
                  {.kind = ReasonKind::parameters_unlike, .numbers = {1, 4}},
                  {.kind = ReasonKind::other_types, .names = {"float32", "bfloat16"}}}),
            "what could be compared agrees, but the optimizers hold the parameters in other "
            "shapes, and after 1 of 4 steps they could not be put together from the other run's: "
            "they are float32 in run a and bfloat16 in run b");
  EXPECT_EQ(said({{.kind = ReasonKind::state_differs, .numbers = {0, 1, 1}, .names = {"python"}},
                  {.kind = ReasonKind::on_rank, .numbers = {3}}}),
            "the random state of python differs since the start of the run, in 1 of 1 record, on "
            "rank 3");
  EXPECT_EQ(
      said({{ReasonKind::draws},
            {.kind = ReasonKind::parted_at_start, .names = {"python"}},
            {.kind = ReasonKind::parted_at_draw, .numbers = {2, 2}, .names = {"numpy"}},
            {.kind = ReasonKind::in_each_run, .names = {"1", "2"}}}),
      "RNG state: draws random numbers; the random state of python differs since the start "
      "of the run; that of numpy differs since a draw of step 2 (1 in one run, 2 in another)");
  EXPECT_EQ(said({{ReasonKind::noise_reaches}, {ReasonKind::loss_differs}}),
            "the noise reaches the model values (the loss differs): no rule hides that. "
            "--deterministic takes away what is only seeds and kernels");
  EXPECT_EQ(said({{.kind = ReasonKind::noise_agrees, .numbers = {3}}, {ReasonKind::noise_idle}}),
            "3 runs of one tree agree in every record but states of generators nobody draws from");
}

TEST(Reasons, OfSettings) {
  EXPECT_EQ(words(SettingDifference{"threads", "2", {}}), "threads differs: 2 in a, not set in b");
  EXPECT_EQ(words(SettingDifference{"mode.trusted", "", "relu"}),
            "mode.trusted differs: empty in a, relu in b");
}

}  // namespace
}  // namespace opguard::test
