// What differs is all that is read: the verdict is the one that reading everything gives.
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <sstream>

#include "align/judge/compare_runs.h"
#include "align/judge/pivot_view.h"
#include "align/made_training.h"
#include "align/pair/equal_start.h"
#include "record/elsewhere.h"
#include "scratch.h"

namespace opguard {
namespace {

using test::Change;
using test::MadeTraining;

class CompareRuns : public testing::Test {
 protected:
  void SetUp() override { dir_ = make_scratch(); }
  void TearDown() override { std::filesystem::remove_all(dir_); }
  std::string folder(const char* name) const { return (dir_ / name).string(); }

  std::unique_ptr<JudgedRuns> compare(ReadWhat read) {
    auto judged = compare_runs(folder("a"), folder("b"), {}, {.read = read});
    EXPECT_TRUE(bool(judged)) << llvm::toString(judged.takeError());
    return std::make_unique<JudgedRuns>(std::move(*judged));
  }

  void write(const MadeTraining& a, const MadeTraining& b) {
    std::filesystem::remove_all(dir_);
    a.write(folder("a"));
    b.write(folder("b"));
  }

  std::filesystem::path dir_;
};

std::string operator_text(const Run& run, const EventRef& at) {
  if (at.process < 0) return "-";
  const ProcessLog& log = run.processes[at.process];
  const Event event = log.events[at.event];
  return log.text(event.boundary) + " step " + std::to_string(event.step) + " occurrence " +
         std::to_string(event.occurrence) + " rank " + std::to_string(log.rank);
}

// All that a verdict says of where the runs part and how far they were equal.
std::string verdict_text(const JudgedRuns& compared) {
  const Verdict& verdict = compared.found.verdict;
  std::ostringstream out;
  out << "outcome " << int(verdict.outcome) << ", longer " << verdict.longer << ", certified "
      << compared.found.alignment.certified_prefix << " of " << compared.found.alignment.pairs
      << ", unequal " << compared.found.alignment.unequal << ", harmless " << verdict.harmless
      << "\nwhy";
  for (const Reason& reason : verdict.why) out << ' ' << int(reason.kind) << ':' << reason.side;
  for (const Pivot& pivot : verdict.candidates) {
    out << "\npivot " << int(pivot.kind) << ": " << operator_text(*compared.a, pivot.a) << " | "
        << operator_text(*compared.b, pivot.b) << ", why";
    for (const Reason& reason : pivot.why) out << ' ' << int(reason.kind);
  }
  for (const RankShare& share : verdict.ranks)
    out << "\nrank " << share.rank << ' ' << int(share.role);
  for (const Pair& pair : verdict.unreached)
    out << "\nunreached " << operator_text(*compared.a, {int32_t(pair.process), pair.a});
  return out.str();
}

// Whether they part, and where: at most so many candidates.
std::string where_text(const JudgedRuns& compared, size_t most) {
  const Verdict& verdict = compared.found.verdict;
  std::string text = std::to_string(int(verdict.outcome));
  for (size_t i = 0; i < verdict.candidates.size() && i < most; ++i)
    text += " " + operator_text(*compared.a, verdict.candidates[i].a) + " | " +
            operator_text(*compared.b, verdict.candidates[i].b);
  return text;
}

uint64_t given(const char* name, uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text ? std::strtoull(text, nullptr, 10) : otherwise;
}

// Pairs of runs, each with a change of a kind at a place that its seed says. OPGUARD_PAIRS:
// how many in place of 500; OPGUARD_SEED: the first; OPGUARD_CHANGE: all of one kind.
TEST_F(CompareRuns, WhatDiffersTellsWhatAllDoes) {
  const uint64_t pairs = given("OPGUARD_PAIRS", 500), first = given("OPGUARD_SEED", 1);
  uint64_t skipped = 0, wrong = 0;
  for (uint64_t seed = first; seed < first + pairs; ++seed) {
    MadeTraining made;
    made.seed = seed;
    made.change = Change(given("OPGUARD_CHANGE", seed % uint64_t(Change::count)));
    made.garbage = seed % 3 == 0;
    made.partly = seed % 4 == 1;
    made.ranks = 1 + seed % 5 / 4;
    made.steps = 4 + seed * 7 % 30;
    MadeTraining other = made;
    other.second = true;
    write(made, other);
    const auto all = compare(ReadWhat::all), differing = compare(ReadWhat::differing);
    EXPECT_EQ(verdict_text(*all), verdict_text(*differing))
        << "seed " << seed << ", change " << int(made.change);
    wrong += verdict_text(*all) != verdict_text(*differing);
    skipped += differing->a->records() < all->a->records();
    if (wrong > 3) break;
  }
  std::printf("left out of %d of %d\n", int(skipped), int(pairs));
  EXPECT_GT(skipped, pairs / 3) << "hardly any log was left out of";
}

// What the groups of a removed step tell, against the first operator that differs there.
struct GroupCount {
  uint64_t at_operator = 0, of_one_run = 0, in_module = 0, phases = 0, elsewhere = 0, none = 0;
};
void count_group(const JudgedRuns& all, const JudgedRuns& kept, uint32_t apart, GroupCount& count) {
  const std::vector<Reason>& why = kept.found.verdict.why;
  if (why.size() < 2) {
    ++count.none;
    return;
  }
  const std::vector<Pivot>& candidates = all.found.verdict.candidates;
  if (candidates.empty()) return;
  const EventView at = view(*all.a, *all.b, candidates[0]).either();
  if (at.event->step != apart) return;
  const std::string& told = why[1].names[0];
  const std::string module(module_of_site(at.boundary));
  // An operator of one run alone: it is told itself, and by the aligner the one that reads what it
  // left.
  const bool of_one_run = candidates[0].kind == PivotKind::structure;
  if (why[1].kind == ReasonKind::parted_event)
    ++(told == at.boundary ? count.at_operator : of_one_run ? count.of_one_run : count.elsewhere);
  else if (told.find('.') == told.npos && told.find(module) == told.npos)
    ++count.phases;
  else
    ++(told.find(module + " ") != told.npos ? count.in_module : count.elsewhere);
}

// `run --keep`: where the runs part in what was kept, the verdict is that of logs that keep all.
// Where they part before, the step is told, and no operator is blamed.
TEST_F(CompareRuns, WhatIsKeptTellsWhatAllDoes) {
  uint64_t kept_apart = 0, removed_apart = 0, equal = 0, other_words = 0;
  GroupCount groups;
  const uint64_t pairs = given("OPGUARD_PAIRS", 300), first = given("OPGUARD_SEED", 1);
  for (uint64_t seed = first; seed < first + pairs; ++seed) {
    MadeTraining made;
    made.seed = seed;
    made.change = Change(seed % uint64_t(Change::count));
    made.ranks = 1 + seed % 5 / 4;
    made.steps = 8 + seed * 7 % 30;
    made.loops = seed % 2 == 0;
    MadeTraining other = made;
    other.second = true;
    write(made, other);
    const auto all = compare(ReadWhat::all);
    std::string why;
    auto indexed = IndexedRuns::open(folder("a"), folder("b"), why);
    ASSERT_TRUE(indexed) << why;
    const uint32_t apart = indexed->first_apart();
    const uint64_t bytes = made.loops ? 8000 : 2000;
    made.segments = other.segments = {.segment_bytes = bytes, .keep_bytes = 6 * bytes};
    write(made, other);
    const auto kept = compare(ReadWhat::automatic);
    indexed = IndexedRuns::open(folder("a"), folder("b"), why);
    ASSERT_TRUE(indexed) << why;
    EXPECT_EQ(indexed->first_apart(), apart) << "seed " << seed;
    if (apart != kNone && apart <= indexed->kept_from()) {
      ++removed_apart;
      const Verdict& verdict = kept->found.verdict;
      EXPECT_EQ(verdict.outcome, Outcome::inconclusive) << "seed " << seed;
      EXPECT_TRUE(verdict.candidates.empty()) << "seed " << seed;
      ASSERT_FALSE(verdict.why.empty()) << "seed " << seed;
      EXPECT_EQ(verdict.why[0].kind, ReasonKind::parted_unkept) << "seed " << seed;
      EXPECT_EQ(verdict.why[0].numbers[0], apart) << "seed " << seed;
      count_group(*all, *kept, apart, groups);
      continue;
    }
    ++(apart == kNone ? equal : kept_apart);
    EXPECT_EQ(kept->found.verdict.outcome, all->found.verdict.outcome)
        << "seed " << seed << ", change " << int(made.change);
    // Why an operator found what it did may lie in what was removed. Where an event began there
    // that differs, so may what other candidates there are. Which is the first does not.
    const bool reaches_back =
        kept->found.alignment.certified_prefix < all->found.alignment.certified_prefix;
    const size_t most = reaches_back ? 1 : all->found.verdict.candidates.size() + 1;
    EXPECT_EQ(where_text(*kept, most), where_text(*all, most))
        << "seed " << seed << "\n"
        << verdict_text(*all) << "\n--- kept\n"
        << verdict_text(*kept);
    EXPECT_LE(kept->found.alignment.certified_prefix, all->found.alignment.certified_prefix)
        << "seed " << seed;
    other_words += verdict_text(*kept) != verdict_text(*all);
  }
  std::printf("kept %d, removed %d, equal %d, other words %d\n", int(kept_apart),
              int(removed_apart), int(equal), int(other_words));
  std::printf(
      "groups: %d at the operator, %d at one of one run alone, %d in its module, %d phases, %d "
      "elsewhere, %d none\n",
      int(groups.at_operator), int(groups.of_one_run), int(groups.in_module), int(groups.phases),
      int(groups.elsewhere), int(groups.none));
  EXPECT_EQ(groups.elsewhere, 0u);
  EXPECT_GT(groups.at_operator, pairs / 10);
  EXPECT_GT(kept_apart, pairs / 10);
  EXPECT_GT(removed_apart, pairs / 10);
  EXPECT_GT(equal, 0u);
}

// Without the indexes nothing is known of what was removed.
TEST_F(CompareRuns, KeptLogsWithoutAnIndexProveNothing) {
  MadeTraining made{
      .seed = 5, .steps = 40, .segments = {.segment_bytes = 2000, .keep_bytes = 9000}};
  for (const Change change : {Change::none, Change::value}) {
    made.change = change;
    MadeTraining other = made;
    other.second = true;
    write(made, other);
    EXPECT_NE(compare(ReadWhat::automatic)->found.verdict.why[0].kind, ReasonKind::log_not_whole);
    for (const char* name : {"a", "b"})
      for (const auto& file : std::filesystem::directory_iterator(folder(name)))
        if (file.path().extension() == ".steps") std::filesystem::remove(file.path());
    EXPECT_EQ(compare(ReadWhat::automatic)->found.verdict.outcome, Outcome::inconclusive);
  }
}

// Logs that lie elsewhere, in one file or in segments: what is read is brought first. So the
// verdict is that of logs which are here.
TEST_F(CompareRuns, OfLogsElsewhereWhatIsReadIsBrought) {
  const uint64_t pairs = given("OPGUARD_PAIRS", 150), first = given("OPGUARD_SEED", 1);
  for (uint64_t seed = first; seed < first + pairs; ++seed) {
    MadeTraining made;
    made.seed = seed;
    made.change = Change(seed % uint64_t(Change::count));
    made.garbage = seed % 3 == 0;
    made.partly = seed % 4 == 1;
    made.ranks = 1 + seed % 5 / 4;
    made.steps = 20 + seed * 7 % 60;
    if (seed % 2 == 0) made.segments = {.segment_bytes = 4000};
    MadeTraining other = made;
    other.second = true;
    write(made, other);
    const auto here = compare(ReadWhat::differing);
    Elsewhere a(folder("a"), folder("here_a")), b(folder("b"), folder("here_b"));
    const Bring bring = [&](const std::vector<FilePiece>& pieces) {
      for (const FilePiece& piece : pieces) (a.there(piece.path).empty() ? b : a).bring(piece);
      return std::string();
    };
    auto judged = compare_runs(folder("here_a"), folder("here_b"), {},
                               {.read = ReadWhat::differing, .bring = &bring});
    ASSERT_TRUE(bool(judged)) << llvm::toString(judged.takeError());
    EXPECT_EQ(verdict_text(*judged), verdict_text(*here))
        << "seed " << seed << ", change " << int(made.change);
  }
}

// Of what is equal hardly anything is brought: blocks of the indexes, and the texts.
TEST_F(CompareRuns, OfLogsElsewhereTheEqualStepsAreNotBrought) {
  for (const Change change : {Change::none, Change::value}) {
    for (const uint64_t segment_bytes : {0, 100'000}) {
      const MadeTraining made{
          .seed = 8, .change = change, .steps = 2000, .segments = {.segment_bytes = segment_bytes}};
      MadeTraining other = made;
      other.second = true;
      write(made, other);
      std::string why;
      auto indexed = IndexedRuns::open(folder("a"), folder("b"), why);
      ASSERT_TRUE(indexed) << why;
      const uint64_t equal = std::min(indexed->first_apart(), made.steps);
      Elsewhere a(folder("a"), folder("here_a")), b(folder("b"), folder("here_b"));
      const Bring bring = [&](const std::vector<FilePiece>& pieces) {
        for (const FilePiece& piece : pieces) (a.there(piece.path).empty() ? b : a).bring(piece);
        return std::string();
      };
      auto judged = compare_runs(folder("here_a"), folder("here_b"), {},
                                 {.read = ReadWhat::differing, .bring = &bring});
      ASSERT_TRUE(bool(judged)) << llvm::toString(judged.takeError());
      const uint64_t brought = a.brought() + b.brought(), size = a.size() + b.size();
      std::printf("%llu of 2000 steps equal, segments of %llu: brought %llu of %llu bytes\n",
                  static_cast<unsigned long long>(equal),
                  static_cast<unsigned long long>(segment_bytes),
                  static_cast<unsigned long long>(brought), static_cast<unsigned long long>(size));
      EXPECT_LT(brought, size * (made.steps - equal) / made.steps + size / 15);
    }
  }
}

// Where the parting alone is asked for, a window of steps tells it. Outcome and first operator are
// those of all of the logs, and the same is told of logs that lie elsewhere.
TEST_F(CompareRuns, AWindowTellsWhereTheRunsPart) {
  const uint64_t pairs = given("OPGUARD_PAIRS", 200), first = given("OPGUARD_SEED", 1);
  uint64_t shorter = 0, other_candidates = 0;
  for (uint64_t seed = first; seed < first + pairs; ++seed) {
    MadeTraining made;
    made.seed = seed;
    made.change = Change(seed % uint64_t(Change::count));
    made.garbage = seed % 3 == 0;
    made.partly = seed % 4 == 1;
    made.ranks = 1 + seed % 5 / 4;
    made.steps = 30 + seed * 7 % 60;
    if (seed % 2 == 0) made.segments = {.segment_bytes = 4000};
    MadeTraining other = made;
    other.second = true;
    write(made, other);
    const auto all = compare(ReadWhat::all);
    auto window = compare_runs(folder("a"), folder("b"), {},
                               {.read = ReadWhat::differing, .parting_alone = true});
    ASSERT_TRUE(bool(window)) << llvm::toString(window.takeError());
    EXPECT_EQ(where_text(*window, 1), where_text(*all, 1))
        << "seed " << seed << ", change " << int(made.change) << "\n"
        << verdict_text(*all) << "\n--- window\n"
        << verdict_text(*window);
    // All that is equal by digests is certified, where the call around all steps ends behind the
    // window. Where it is read it takes back what it does of all of the logs.
    std::string why;
    auto indexed = IndexedRuns::open(folder("a"), folder("b"), why);
    ASSERT_TRUE(indexed) << why;
    const uint64_t certified = window->found.alignment.certified_prefix;
    if (certified != all->found.alignment.certified_prefix)
      EXPECT_GE(certified, indexed->equal_before(indexed->first_apart())) << "seed " << seed;
    for (const auto* run : {window->a.get(), window->b.get()})
      for (const ProcessLog& log : run->processes) EXPECT_TRUE(log.closed) << log.damage;
    shorter += window->b->processes[0].events.size() + 40 < all->b->processes[0].events.size();
    other_candidates += where_text(*window, 99) != where_text(*all, 99);

    Elsewhere a(folder("a"), folder("here_a")), b(folder("b"), folder("here_b"));
    const Bring bring = [&](const std::vector<FilePiece>& pieces) {
      for (const FilePiece& piece : pieces) (a.there(piece.path).empty() ? b : a).bring(piece);
      return std::string();
    };
    auto brought =
        compare_runs(folder("here_a"), folder("here_b"), {},
                     {.read = ReadWhat::differing, .bring = &bring, .parting_alone = true});
    ASSERT_TRUE(bool(brought)) << llvm::toString(brought.takeError());
    EXPECT_EQ(verdict_text(*brought), verdict_text(*window)) << "seed " << seed;
  }
  std::printf("shorter %d, other candidates %d\n", int(shorter), int(other_candidates));
  EXPECT_GT(shorter, pairs / 3);
}

// However long the runs go on behind the first step that differs.
TEST_F(CompareRuns, OfALongTailAWindowIsRead) {
  const MadeTraining made{.seed = 8, .change = Change::value, .steps = 2000};
  MadeTraining other = made;
  other.second = true;
  write(made, other);
  std::string why;
  auto indexed = IndexedRuns::open(folder("a"), folder("b"), why);
  ASSERT_TRUE(indexed) << why;
  Elsewhere a(folder("a"), folder("here_a")), b(folder("b"), folder("here_b"));
  const Bring bring = [&](const std::vector<FilePiece>& pieces) {
    for (const FilePiece& piece : pieces) (a.there(piece.path).empty() ? b : a).bring(piece);
    return std::string();
  };
  auto judged = compare_runs(folder("here_a"), folder("here_b"), {},
                             {.read = ReadWhat::differing, .bring = &bring, .parting_alone = true});
  ASSERT_TRUE(bool(judged)) << llvm::toString(judged.takeError());
  EXPECT_EQ(judged->found.verdict.outcome, Outcome::diverged);
  const ProcessLog& log = judged->b->processes[0];
  EXPECT_EQ(log.events.step(log.events.size() - 1), indexed->first_apart() + 16);
  std::printf("brought %llu of %llu bytes\n",
              static_cast<unsigned long long>(a.brought() + b.brought()),
              static_cast<unsigned long long>(a.size() + b.size()));
  EXPECT_LT((a.brought() + b.brought()) * 10, a.size() + b.size());
}

// A store that does not answer is told in its own words, whenever it stops to.
TEST_F(CompareRuns, WhatCannotBeBroughtIsAnError) {
  MadeTraining made{.seed = 8, .change = Change::value, .steps = 60};
  MadeTraining other = made;
  other.second = true;
  write(made, other);
  size_t calls = 1000;
  for (size_t answered = 0; answered < calls; ++answered) {
    std::filesystem::remove_all(folder("here_a"));
    std::filesystem::remove_all(folder("here_b"));
    Elsewhere a(folder("a"), folder("here_a")), b(folder("b"), folder("here_b"));
    size_t call = 0;
    const Bring bring = [&](const std::vector<FilePiece>& pieces) {
      if (call++ >= answered) return std::string("the store does not answer");
      for (const FilePiece& piece : pieces) (a.there(piece.path).empty() ? b : a).bring(piece);
      return std::string();
    };
    auto judged = compare_runs(folder("here_a"), folder("here_b"), {},
                               {.read = ReadWhat::differing, .bring = &bring});
    if (judged) {
      EXPECT_EQ(judged->found.verdict.outcome, Outcome::diverged);
      EXPECT_LE(call, answered) << "a verdict though something was not brought";
      calls = call;
    } else {
      EXPECT_NE(llvm::toString(judged.takeError()).find("the store does not answer"),
                std::string::npos);
    }
  }
  EXPECT_LT(calls, 1000u);
}

TEST_F(CompareRuns, EqualRunsAreNotRead) {
  const MadeTraining made{.seed = 5, .steps = 200};
  MadeTraining other = made;
  other.second = true;
  write(made, other);
  std::string why;
  auto indexed = IndexedRuns::open(folder("a"), folder("b"), why);
  ASSERT_TRUE(indexed) << why;
  EXPECT_EQ(indexed->first_apart(), kNone);
  const EqualStart start = indexed->start(1);
  EXPECT_EQ(start.step, 199u);
  EXPECT_EQ(start.steps, 199u);
  const auto compared = compare(ReadWhat::differing);
  EXPECT_EQ(compared->found.verdict.outcome, Outcome::identical);
  EXPECT_LT(compared->a->records() * 50, start.records);
}

TEST_F(CompareRuns, TheFirstStepThatDiffersIsFoundInFewReads) {
  MadeTraining made{.seed = 8, .change = Change::value, .steps = 3000};
  MadeTraining other = made;
  other.second = true;
  write(made, other);
  std::string why;
  auto indexed = IndexedRuns::open(folder("a"), folder("b"), why);
  ASSERT_TRUE(indexed) << why;
  EXPECT_NE(indexed->first_apart(), kNone);
  EXPECT_LE(indexed->reads(), 30u);
}

// Whatever is wrong with an index, the log is read as ever.
TEST_F(CompareRuns, ADamagedIndexIsNoIndex) {
  const MadeTraining made{.seed = 3, .steps = 50};
  MadeTraining other = made;
  other.second = true;
  write(made, other);
  for (const auto& file : std::filesystem::directory_iterator(folder("a")))
    if (file.path().extension() == ".steps") {
      std::filesystem::resize_file(file.path(), std::filesystem::file_size(file.path()) - 7);
    }
  std::string why;
  EXPECT_FALSE(IndexedRuns::open(folder("a"), folder("b"), why));
  EXPECT_NE(why.find(".log: was not closed"), std::string::npos) << why;
  const auto compared = compare(ReadWhat::differing);
  EXPECT_EQ(compared->found.verdict.outcome, Outcome::identical);
  EXPECT_EQ(compared->a->records(), compare(ReadWhat::all)->a->records());
}

// An index beside a log that it is not of: what binds them tells.
TEST_F(CompareRuns, AnotherLogsIndexIsNotBelieved) {
  const MadeTraining made{.seed = 3, .change = Change::value, .steps = 50};
  MadeTraining other = made;
  other.second = true;
  write(made, other);
  auto index = [&](const char* name) {
    for (const auto& file : std::filesystem::directory_iterator(folder(name)))
      if (file.path().extension() == ".steps") return file.path();
    return std::filesystem::path();
  };
  std::filesystem::copy_file(index("a"), index("b"),
                             std::filesystem::copy_options::overwrite_existing);
  const auto compared = compare(ReadWhat::differing);
  EXPECT_EQ(compared->found.verdict.outcome, Outcome::diverged);
}

}  // namespace
}  // namespace opguard
