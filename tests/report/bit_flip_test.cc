// A log against itself, and against itself with one bit of one digest changed, be it of a tensor or
// of a generator's state. The report names exactly that record.
#include <gtest/gtest.h>

#include <random>

#include "align/builder.h"
#include "align/pair/difference.h"
#include "report/report.h"

namespace opguard {
namespace {

using test::E;
using test::in;
using test::LogBuilder;
using test::out;
using test::written;

// Layers that share their boundaries, backward, an optimizer step; some values recur on purpose.
// The states of two generators before each step and before a random operator.
ProcessLog training(int32_t rank) {
  LogBuilder log(rank);
  uint64_t value = 1000 * (rank + 1);
  for (uint32_t step = 0; step < 4; ++step) {
    const uint64_t first = value;
    log.add({"<state>",
             {in(900 + step, "torch.cpu"), in(800, "python")},
             "",
             step,
             Phase::forward,
             EventKind::state});
    for (int layer = 0; layer < 6; ++layer) {
      for (int op = 0; op < 5; ++op, ++value)
        log.add({"block.op" + std::to_string(op) + ":aaaa",
                 {in(value, "self"), in(op + 1, "arg0"), out(value + 1)},
                 op == 2 ? "dim=-1" : "",
                 step});
    }
    log.add({"<generators>",
             {in(950 + step, "torch.cpu")},
             "",
             step,
             Phase::forward,
             EventKind::state});
    log.add({"train.backward:bbbb",
             {{SlotKind::in, value, "root0", {}, kModelValue}},
             "",
             step,
             Phase::forward,
             EventKind::loss});
    for (uint64_t v = value; v > first; --v)
      log.add({"block.op" + std::to_string((v - first - 1) % 5) + ":aaaa",
               {in(v + 5000, "grad0"), out(v + 4999)},
               "",
               step,
               Phase::backward,
               EventKind::node,
               "Backward0",
               0,
               1});
    log.add({"train.step:cccc",
             {{SlotKind::in, 7 + step, "param:w", {4}, kModelValue},
              in(first + 5000, "grad:w"),
              {SlotKind::out, 8 + step, "param:w", {4}, kModelValue}},
             "lr=0.1",
             step,
             Phase::optimizer,
             EventKind::optimizer,
             "",
             0,
             1});
    ++value;
  }
  return log.log();
}

struct Answer {
  Alignment alignment;
  Verdict verdict;
};

Answer compare(const opguard::Run& a, const opguard::Run& b) {
  Answer answer;
  answer.alignment = align_runs(a, b);
  answer.verdict = judge(a, b, answer.alignment);
  return answer;
}

TEST(BitFlip, ALogEqualsItself) {
  const opguard::Run run = test::run_of({training(0), training(1)});
  const Answer answer = compare(run, run);
  EXPECT_EQ(answer.verdict.outcome, Outcome::identical);
  EXPECT_EQ(answer.alignment.certified_prefix, answer.alignment.pairs);
  EXPECT_EQ(answer.alignment.unequal, 0u);
}

enum class Digest { value, flat };

// The record of slot `index` of that process, and nothing else, is what the report names.
void expect_found(const opguard::Run& a, const opguard::Run& b, size_t process, size_t index,
                  const std::string& what, int& diverged) {
  const ProcessLog& log = b.processes[process];
  const Slot slot = log.slots[index];
  const Answer answer = compare(a, b);
  ASSERT_EQ(answer.alignment.unequal, 1u) << what;
  ASSERT_EQ(answer.alignment.pairs, a.processes[0].events.size() * 2) << what;
  for (const ProcessPair& both : answer.alignment.processes)
    for (const Pair& pair : both.pairs) {
      ASSERT_EQ(pair.a, pair.b) << what;
      if (pair.equality == Equality::equal) continue;
      const Event& event = log.events[pair.b];
      ASSERT_EQ(size_t(both.b), process) << what;
      ASSERT_TRUE(index >= event.first_slot && index < event.first_slot + event.slot_count);
      const SlotDifferences found(a.processes[both.a], a.processes[both.a].events[pair.a], log,
                                  event);
      ASSERT_EQ(found.slots.size(), 1u) << what;
      ASSERT_EQ(found.slots[0].b, slot) << what;
      // A loss, a parameter after the step: never called the same.
      if ((slot.flags & kModelValue) &&
          (event.kind == EventKind::loss || slot.kind == SlotKind::out)) {
        ASSERT_EQ(answer.verdict.outcome, Outcome::diverged) << what;
      }
      // The report names it, whether a model value depends on it or not.
      const Report report{a, b, answer.alignment, answer.verdict, {}};
      const std::string text = format_terminal(report, false);
      const bool pivot = !answer.verdict.candidates.empty();
      diverged += pivot;
      const std::string name = log.text(slot.name);
      const std::string named = pivot ? "    " + name + "  a  " : "slot " + name + "\n";
      ASSERT_NE(text.find(named), std::string::npos) << what << "\n" << text;
      ASSERT_NE(text.find(pivot ? "pivot: " : "1 pair differs"), std::string::npos) << text;
      const std::string boundary = log.text(event.boundary);
      ASSERT_NE(text.find(boundary), std::string::npos) << text;
      ASSERT_NE(text.find("step " + std::to_string(event.step)), std::string::npos) << text;
    }
}

void flip_a_thousand(Digest digest) {
  const opguard::Run a = test::run_of({training(0), training(1)});
  opguard::Run b = a;
  std::mt19937_64 random(11);
  int diverged = 0;
  for (int trial = 0; trial < 1000; ++trial) {
    const size_t process = random() % 2;
    ProcessLog& log = b.processes[process];
    const size_t index = random() % log.slots.size();
    const unsigned bit = random() % 128;
    Slot& slot = log.slots.edit()[index];
    const Slot kept = slot;
    if (digest == Digest::flat) {
      slot.flat ^= 1ull << bit % 64;
    } else {
      (bit < 64 ? slot.value.h : slot.value.m) ^= 1ull << bit % 64;
      // Half of them as of a tensor of one row, half where it stays.
      if (trial % 2 == 0) slot.flat = slot.value.h;
    }
    expect_found(a, b, process, index,
                 "process " + std::to_string(process) + ", slot " + std::to_string(index) +
                     ", bit " + std::to_string(bit),
                 diverged);
    if (testing::Test::HasFatalFailure()) return;
    slot = kept;
  }
  // Of the model values some were among them.
  EXPECT_GT(diverged, 0);
}

TEST(BitFlip, AnyOfAThousandIsFoundExactly) { flip_a_thousand(Digest::value); }

TEST(BitFlip, OfTheDigestAsOneRowToo) { flip_a_thousand(Digest::flat); }

}  // namespace
}  // namespace opguard
