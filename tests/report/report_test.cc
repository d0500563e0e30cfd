// The report as people and programs get it, against tests/fixtures/report/<case>/. OPGUARD_UPDATE=1
// in the environment rewrites the expected files; that diff is reviewed like code.
#include "report/report.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <sstream>
#include <utility>

#include "align/builder.h"
#include "nlohmann/json.hpp"
#include "report/findings.h"
#include "support/version.h"

namespace opguard {
namespace {

using test::E;
using test::in;
using test::LogBuilder;
using test::out;

const std::string kFixtures = std::string(OPGUARD_FIXTURES) + "/report/";

std::string read(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

// The expected files name the fixtures' folder and this build by a word, wherever the tree is.
std::string portable(std::string text) {
  const std::string build =
      "\"version\": \"" + std::string(version()) + "\",\n  \"commit\": \"" + commit() + "\"";
  const std::pair<std::string, std::string> words[] = {
      {kFixtures, "FIXTURES/"}, {build, "\"version\": \"VERSION\",\n  \"commit\": \"COMMIT\""}};
  for (const auto& [own, word] : words)
    for (size_t at = 0; (at = text.find(own, at)) != std::string::npos; at += word.size())
      text.replace(at, own.size(), word);
  return text;
}

void expect_golden(const std::string& path, const std::string& text) {
  if (std::getenv("OPGUARD_UPDATE")) std::ofstream(kFixtures + path, std::ios::binary) << text;
  EXPECT_EQ(text, read(kFixtures + path)) << path;
}

struct Case {
  opguard::Run a, b;
  Alignment alignment;
  Verdict verdict;
  Coverage coverage;
  std::vector<SettingDifference> settings;
  bool explain = false;

  Report report() const {
    Report report{a, b, alignment, verdict, coverage, settings, explain};
    report.identity = {"opguard align a b", "2026-11-24T21:27:31Z"};
    return report;
  }

  void expect(const std::string& name) const {
    expect_golden(name + "/expected.txt", portable(format_terminal(report(), false)));
    expect_golden(name + "/expected.json", portable(format_json(report())));
  }
};

Location at(const std::string& side, uint32_t line, uint32_t column, const std::string& text,
            const std::string& callee, const std::string& function = "rotate") {
  Location location;
  location.file = "rope.py";
  location.path = kFixtures + side + "/rope.py";
  location.line = location.end_line = line;
  location.column = column;
  location.end_column = column + uint32_t(text.size());
  location.text = text;
  location.callee = callee;
  location.function = function;
  return location;
}

// Three boundaries of a rotary embedding, two steps; `change` makes side b's log.
LogBuilder rope(const std::string& side) {
  LogBuilder log;
  log.at("rope.chunk:a1a1", at(side, 5, 13, "x.chunk(2, dim=-1)", ".chunk"));
  log.at("rope.mul:b2b2", at(side, 6, 22, "x1 * cos", "*"));
  log.at("rope.softmax:c3c3",
         at(side, 10, 11, "torch.softmax(x, dim=-1)", "torch.softmax", "weigh"));
  return log;
}

LogBuilder& rope_steps(LogBuilder& log, uint64_t change, const std::string& scalars) {
  for (uint32_t step = 0; step < 2; ++step) {
    const uint64_t base = 100 * step, later = step == 0 ? 0 : change;
    log.add({"rope.chunk:a1a1",
             {in(base + 1 + later, "self"), out(base + 2 + later)},
             "arg1=2, dim=-1",
             step});
    log.add({"rope.mul:b2b2",
             {in(base + 2 + later, "self"), in(3, "other"), out(base + 4 + change)},
             "",
             step});
    log.add({"rope.softmax:c3c3",
             {in(base + 4 + change, "input"), out(base + 5 + change)},
             scalars,
             step});
  }
  return log;
}

Case value_case() {
  Case c;
  LogBuilder a = rope("value/input/a"), b = rope("value/input/b");
  c.a = test::run_of({rope_steps(a, 0, "dim=-1").log()});
  c.b = test::run_of({rope_steps(b, 7000, "dim=-1").log()});
  c.alignment = align_runs(c.a, c.b);
  c.verdict.outcome = Outcome::diverged;
  c.verdict.why = {{ReasonKind::loss_differs}};
  c.verdict.candidates = {{PivotKind::value, {0, 1}, {0, 1}, 4, {{ReasonKind::other_result}}},
                          {PivotKind::input, {0, 2}, {0, 2}, 5, {{ReasonKind::made_by_nobody}}}};
  c.verdict.harmless = 2;
  c.coverage = {5120, 5101, 2};
  c.settings = {{"torch", "2.12.0", "2.13.0"}};
  return c;
}

TEST(Report, Value) { value_case().expect("value"); }

TEST(Report, ExplainTellsHowEventsWerePaired) {
  Case c = value_case();
  c.explain = true;
  expect_golden("value/expected_explain.txt", portable(format_terminal(c.report(), false)));
}

TEST(Report, ColoursOnlyWhenAsked) {
  const Case c = value_case();
  const std::string plain = format_terminal(c.report(), false);
  std::string colour = format_terminal(c.report(), true);
  EXPECT_EQ(plain.find('\x1b'), std::string::npos);
  EXPECT_NE(colour.find("\x1b[1;31mdiverged\x1b[0m"), std::string::npos);
  // But for the colours it is the same text.
  for (size_t at = 0; (at = colour.find('\x1b')) != std::string::npos;)
    colour.erase(at, colour.find('m', at) + 1 - at);
  EXPECT_EQ(colour, plain);
}

TEST(Report, Scalar) {
  Case c;
  // The trees are gone: the recorded text is shown.
  LogBuilder a = rope("gone"), b = rope("gone");
  c.a = test::run_of({rope_steps(a, 0, "dim=-1, eps=1e-05, out=[1, 2]").log()});
  c.b = test::run_of({rope_steps(b, 0, "dim=-1, eps=1e-06, out=[1, 2]").log()});
  c.alignment = align_runs(c.a, c.b);
  c.verdict.outcome = Outcome::diverged;
  c.verdict.why = {{ReasonKind::parameters_differ}};
  c.verdict.candidates = {
      {PivotKind::scalar, {0, 2}, {0, 2}, kNone, {{ReasonKind::other_argument}}}};
  c.expect("scalar");

  // What stands behind it; sources are the user's, and shown safely.
  Report report = c.report();
  Background background;
  const SourceText set{"", "train.py", "/b/train.py", {7, 7}, {"  eps = get_eps()"}};
  const SourceText made{"", "train.py", "/b/train.py", {2, 4}, {"def get_eps():\x1b[31m"}};
  background.numbers = {
      {"eps", {"1e-05", "1e-06"}, {"eps=1e-5", "eps=1e-6"}, {{1, {set, made}, true}}}};
  Suspect suspect;
  suspect.nearness = Nearness::origin;
  suspect.sides[0] = {"", "train.py", "/a/train.py", {3, 3}, {"  return 1e-5"}};
  suspect.sides[1] = {"", "train.py", "/b/train.py", {3, 4}, {"  x = 1e-6", "  return x"}};
  background.suspects = {suspect};
  report.backgrounds = {background};
  const std::string text = format_terminal(report, false);
  for (const char* line : {"  where eps can come from: 1e-05 in a, 1e-06 in b\n",
                           "    b  train.py:7    eps = get_eps()\n",
                           "       train.py:2-4  def get_eps():\\x1b[31m  <- differs\n",
                           "    a train.py:3, b train.py:3-4: the value can come from there\n",
                           "      - return 1e-5\n", "      + x = 1e-6\n"})
    EXPECT_NE(text.find(line), std::string::npos) << line << text;
  const auto json = nlohmann::json::parse(format_json(report));
  EXPECT_EQ(json["pivot"]["suspects"][0]["nearness"], "origin");
  EXPECT_EQ(json["pivot"]["suspects"][0]["b"]["last"], 4);
  EXPECT_EQ(json["pivot"]["numbers"][0]["ways"][0]["steps"].size(), 2u);
}

TEST(Report, StructureOnOneSide) {
  Case c;
  LogBuilder a = rope("value/input/a"), b = rope("value/input/b");
  b.at("rope.add:d4d4", at("value/input/b", 6, 22, "x1 * cos + 0", "+"));
  c.a = test::run_of({rope_steps(a, 0, "dim=-1").log()});
  rope_steps(b, 0, "dim=-1");
  b.add({"rope.add:d4d4", {in(4, "self"), out(44)}, "arg1=0", 1});
  c.b = test::run_of({b.log()});
  c.alignment = align_runs(c.a, c.b);
  c.verdict.outcome = Outcome::diverged;
  c.verdict.why = {{ReasonKind::loss_differs}};
  c.verdict.candidates = {
      {PivotKind::structure, {}, {0, 6}, kNone, {{.kind = ReasonKind::only_one_run, .side = 1}}}};
  c.expect("structure");
}

TEST(Report, Identical) {
  Case c;
  LogBuilder a = rope("value/input/a");
  c.a = c.b = test::run_of({rope_steps(a, 0, "dim=-1").log()});
  c.alignment = align_runs(c.a, c.b);
  c.verdict.outcome = Outcome::identical;
  c.verdict.why = {{ReasonKind::all_agree}};
  c.coverage = {5120, 5120, 0};
  c.expect("identical");
}

TEST(Report, LogsWithHolesSaySo) {
  Case c;
  LogBuilder a = rope("value/input/a");
  c.a = c.b = test::run_of({rope_steps(a, 0, "dim=-1").log()});
  c.b.processes[0].lost = 12;
  c.b.processes[0].closed = false;
  c.a.processes[0].damage = "record 18204 (byte 1165056): checksum differs";
  c.alignment = align_runs(c.a, c.b);
  Reason hole{.kind = ReasonKind::log_not_whole, .side = 1};
  hole.events[1].process = 0;
  c.verdict.why = {{ReasonKind::held_agrees}, hole};
  c.expect("holes");
}

// Of one run by itself there is no a and b, and a hole is one note.
TEST(Report, AHoleInOneRunIsToldOnce) {
  opguard::Run run = test::run_of({LogBuilder().add({"m.f:1", {in(1), out(2)}}).log()});
  run.processes[0].lost = 12;
  const std::string text = format_findings(run, check_single(run), false);
  const size_t note = text.find("note: the run, rank 0");
  ASSERT_NE(note, std::string::npos) << text;
  EXPECT_NE(text.find("12 records were lost", note), std::string::npos) << text;
  EXPECT_EQ(text.find("note: ", note + 1), std::string::npos) << text;
}

TEST(Report, HostileTextStaysText) {
  Case c = value_case();
  for (opguard::Run* run : {&c.a, &c.b}) {
    for (auto& [boundary, location] : run->processes[0].locations) {
      location.path.clear();
      location.file = "\x1b]0;title\x07.py";
      location.text = "x\xe2\x80\xae * \xff";
      location.callee = "\x1b[2J";
      location.function = "\x9b";
    }
    for (std::string& text : run->processes[0].strings) text += "\x1b[31m\n";
  }
  c.verdict.why =
      c.verdict.candidates[0].why = {{.kind = ReasonKind::buffer_differs, .names = {"\x1b[H"}}};
  c.verdict.notes = {{{.kind = ReasonKind::ended, .side = 0, .names = {"\x1b[1m"}}}};
  c.settings = {{"\x1b[2m", "\x1b[3m", {}}};
  const std::string text = format_terminal(c.report(), false);
  EXPECT_EQ(text.find_first_of("\x1b\x07\x9b\xff"), std::string::npos) << text;
  EXPECT_EQ(text.find("\xe2\x80\xae"), std::string::npos);
  EXPECT_FALSE(nlohmann::json::parse(format_json(c.report())).is_discarded());
}

TEST(Report, WithoutAnyKnownPlace) {
  Case c = value_case();
  for (opguard::Run* run : {&c.a, &c.b}) run->processes[0].locations.clear();
  const std::string text = format_terminal(c.report(), false);
  EXPECT_NE(text.find("rope.mul:b2b2: its place is not known"), std::string::npos) << text;
  const auto json = nlohmann::json::parse(format_json(c.report()));
  EXPECT_EQ(json["pivot"]["operator"], "rope.mul");
  EXPECT_EQ(json["pivot"]["a"]["file"], "");
}

TEST(Report, RowsInAnotherOrder) {
  Case c = value_case();
  for (Slot& slot : c.b.processes[0].slots.edit()) slot.value.m &= 0xff;
  for (Slot& slot : c.a.processes[0].slots.edit()) slot.value.m &= 0xff;
  Slot &x = c.a.processes[0].slots.edit()[4], &y = c.b.processes[0].slots.edit()[4];
  y.value.m = x.value.m;
  EXPECT_NE(format_terminal(c.report(), false).find("the same rows in another order"),
            std::string::npos);
}

}  // namespace
}  // namespace opguard
