#include "align/rules/noise.h"

#include <gtest/gtest.h>

#include "align/builder.h"
#include "align/rules/hidden.h"
#include "report/reasons.h"

namespace opguard::test {
namespace {

// What `add` makes of each of two runs, as the rules that are found.
template <typename Add>
std::vector<NoiseSite> noise(Add add) {
  LogBuilder logs[2];
  for (int run : {0, 1}) {
    logs[run].log().start_ns = 1'800'000'000'000'000'000;
    logs[run].add({"m.first:aaaa", {in(1), out(2)}});
    add(logs[run], uint64_t(run));
    logs[run].add({"m.last:zzzz", {in(2), out(3)}});
  }
  const opguard::Run a = run_of({logs[0].log()}), b = run_of({logs[1].log()});
  Alignment alignment = align_runs(a, b);
  std::vector<NoiseSite> sites = find_noise(a, b, alignment);
  // Each rule reads back, and together they leave nothing unequal.
  std::string lines;
  for (NoiseSite& site : sites) site.rule.why = words(a, b, site.pivot.why);
  for (const NoiseSite& site : sites) lines += site.rule.line() + "\n";
  std::vector<Rule> rules;
  Diagnostics diags;
  EXPECT_TRUE(parse_rules(lines, "x", rules, diags)) << diags.text();
  HiddenRecords(rules, a, b).apply(alignment);
  EXPECT_EQ(alignment.unequal, 0u) << lines;
  return sites;
}

std::string line(const std::vector<NoiseSite>& sites) {
  EXPECT_EQ(sites.size(), 1u);
  return sites.empty() ? "" : sites[0].rule.line();
}

TEST(Noise, NoneIsNone) {
  EXPECT_TRUE(noise([](LogBuilder&, uint64_t) {}).empty());
}

TEST(Noise, OnlyWhereItBegan) {
  const auto sites = noise([](LogBuilder& log, uint64_t run) {
    log.add({"m.sum:bbbb", {in(1), out(50 + run)}});
    log.add({"m.scale:cccc", {in(50 + run), out(60 + run)}});
    log.add({"m.sum:bbbb", {in(1), out(70 + run)}});
  });
  EXPECT_EQ(
      line(sites),
      "m.sum:bbbb:out/out0,kind=op,phase=forward -- why: equal inputs, another result: sums in "
      "no fixed order (atomics, threads), or memory it reads unseen");
  EXPECT_EQ(sites[0].times, 2u);
  EXPECT_EQ(sites[0].pivot.a, (EventRef{0, 1}));
}

TEST(Noise, UninitialisedMemory) {
  const auto sites = noise([](LogBuilder& log, uint64_t run) {
    S garbage = in(40 + run);
    garbage.flags = kUninitialised;
    log.add({"m.add:bbbb", {garbage, out(50 + run)}});
  });
  EXPECT_NE(line(sites).find("m.add:bbbb:out/out0"), std::string::npos);
  EXPECT_NE(line(sites).find("why: uninitialised memory: reads what torch.empty left in arg0"),
            std::string::npos);
}

TEST(Noise, Numbers) {
  auto number = [](const std::string& a, const std::string& b) {
    return line(noise([&](LogBuilder& log, uint64_t run) {
      log.add({"m.full:bbbb", {in(1), out(50 + run)}, "fill=" + (run ? b : a) + ", dim=1"});
    }));
  };
  EXPECT_EQ(number("1800000001.25", "1800000002.5"),
            "m.full:bbbb:scalar/fill,kind=op,phase=forward -- why: wall clock: a number that is "
            "another one in every run (1800000001.25 in one run, 1800000002.5 in another)");
  EXPECT_NE(number("139637976727552", "140637976727552").find("why: address: "), std::string::npos);
  EXPECT_NE(number("100", "100.5").find("why: a number from outside"), std::string::npos);
}

TEST(Noise, GeneratorsLast) {
  const auto sites = noise([](LogBuilder& log, uint64_t run) {
    // That of the start tells nothing: programs seed themselves after it.
    for (uint32_t step : {0, 1})
      log.add({.boundary = "<state>",
               .slots = {in(8 + run, "python")},
               .step = step,
               .kind = EventKind::state});
    log.add({"m.dropout:bbbb", {in(1), out(50 + run)}, {}, 1});
  });
  ASSERT_EQ(sites.size(), 2u);
  EXPECT_EQ(
      sites[0].rule.why,
      "RNG state: draws random numbers; the random state of python differs since the start of "
      "the run");
  EXPECT_EQ(sites[1].rule.text, "<state>:in/python");
}

TEST(Noise, AGeneratorNobodyDrawsFromIsNone) {
  const auto sites = noise([](LogBuilder& log, uint64_t run) {
    for (int step : {0, 1})
      log.add({.boundary = "<state>",
               .slots = {in(8 + run, "python")},
               .step = uint32_t(step),
               .kind = EventKind::state});
  });
  ASSERT_EQ(sites.size(), 1u);
  EXPECT_TRUE(sites[0].idle);
  EXPECT_NE(sites[0].rule.why.find("nobody draws from it"), std::string::npos);
}

TEST(Noise, DataOrder) {
  const auto sites = noise([](LogBuilder& log, uint64_t run) {
    log.add({"m.next:bbbb", {out(50 + run)}});
    log.add({"m.next:bbbb", {out(51 - run)}});
  });
  EXPECT_NE(line(sites).find("why: data order: "), std::string::npos);
}

TEST(Noise, AnEventOfOneRun) {
  const auto sites = noise([](LogBuilder& log, uint64_t run) {
    if (run == 1) log.add({"m.poll:bbbb", {in(1), out(50)}});
  });
  EXPECT_EQ(line(sites).find("m.poll:bbbb,kind=op,phase=forward -- why: runs more often"), 0u);
}

}  // namespace
}  // namespace opguard::test
