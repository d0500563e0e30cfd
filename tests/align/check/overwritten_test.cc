// Memory overwritten between producer and consumer, on runs written by hand.
#include "align/check/overwritten.h"

#include <gtest/gtest.h>

#include "align/builder.h"
#include "align/check/races.h"
#include "report/findings.h"
#include "report/reasons.h"

namespace opguard::test {
namespace {

// A slot of block `storage`.
S at(S slot, uint32_t storage, uint32_t version = 0) {
  slot.storage = storage;
  slot.version = version;
  return slot;
}

E op(std::string boundary, std::vector<S> slots, uint32_t thread = 0) {
  return {.boundary = std::move(boundary), .slots = std::move(slots), .thread = thread};
}

// One after the other, 10 us each; an event that holds others begins before them.
opguard::Run timed(LogBuilder& builder) {
  ProcessLog log = builder.log();
  for (size_t i = 0; i < log.events.size(); ++i) {
    Event& event = log.events.edit()[i];
    event.start_ns = 10000 * (event.begin + 1) - 9000 - (i - event.begin);
    event.end_ns = 10000 * (i + 1);
  }
  return run_of({log});
}

OverwrittenCheck check(LogBuilder& log) { return check_overwritten(timed(log)); }

// y = a * 2 in memory of its own (block 2).
void product(LogBuilder& log, uint64_t value) {
  log.add(op("m.mul", {at(in(1), 1), at(out(value), 2)}));
}

// A view of the ring (block 7) handed out, as `ring[k].unbind()` does.
void handed_out(LogBuilder& log, uint64_t value) {
  S ring = at(in(900 + value, "self"), 7);
  ring.shape = {2, 4, 8};
  log.add(op("l.unbind", {ring, at(out(value), 7)}));
}

TEST(Overwritten, AResultReadAsItWasLeftIsNone) {
  LogBuilder log;
  product(log, 5);
  log.add(op("m.add", {at(in(5), 2), at(out(6), 3)}));
  log.add(op("m.sub", {at(in(5), 2), at(in(6, "arg1"), 3), at(out(7), 4)}));
  OverwrittenCheck found = check(log);
  EXPECT_EQ(found.reads, 4u);
  EXPECT_EQ(found.compared, 3u);
  EXPECT_TRUE(found.findings.empty());
}

TEST(Overwritten, ProducerConsumerAndWindow) {
  LogBuilder log;
  product(log, 5);
  log.add(op("m.add", {at(in(5), 2), at(out(6), 3)}));
  log.add(op("m.other", {at(in(6), 3), at(out(8), 5)}, 1));
  log.add(op("m.sub", {at(in(55), 2), at(out(7), 4)}));
  opguard::Run run = timed(log);
  OverwrittenCheck found = check_overwritten(run);
  ASSERT_EQ(found.findings.size(), 1u);
  const Overwrite& first = found.findings[0];
  EXPECT_EQ(first.producer, (EventRef{0, 0}));
  EXPECT_EQ(first.seen, (EventRef{0, 1}));
  EXPECT_EQ(first.consumer, (EventRef{0, 3}));
  EXPECT_EQ(first.from_ns, 11000u);
  EXPECT_EQ(first.to_ns, 31000u);
  ASSERT_EQ(first.meanwhile.size(), 2u);  // m.add itself ran on after it had read
  EXPECT_EQ(first.meanwhile[0].thread, 1u);
  EXPECT_EQ(first.meanwhile[0].first, (EventRef{0, 2}));
  EXPECT_EQ(first.meanwhile[1].first, (EventRef{0, 1}));
}

// Every excuse alone turns the case above into none.
TEST(Overwritten, Excuses) {
  for (int excuse = 0; excuse < 9; ++excuse) {
    LogBuilder log;
    S result = at(out(5), 2), read = at(in(55), 2);
    if (excuse == 1) read.version = 1;                       // in place, by an unprobed operator
    if (excuse == 2) result.flags = kUninitialised;          // torch.empty
    if (excuse == 3) result.value = 0;                       // room, not a value
    if (excuse == 4) read.storage = 3;                       // another block
    if (excuse == 5) read.shape = {8, 4};                    // another view
    if (excuse == 6) read.flags = kCarried;                  // not read again
    if (excuse == 7) read.name = "param:weight";             // written through .data
    if (excuse == 8) result.flags = read.flags = kPermuted;  // strides are not known
    log.add(op("m.mul", {at(in(1), 1), result}));
    log.add(op("m.sub", {read, at(out(7), 4)}));
    EXPECT_EQ(check(log).findings.size(), excuse == 0 ? 1u : 0u) << excuse;
  }
}

TEST(Overwritten, ARecordedWriterExcuses) {
  for (int writer = 0; writer < 4; ++writer) {
    LogBuilder log;
    product(log, 5);
    S target = at(written(55), 2);
    E write = op("w.write", {at(in(9, "arg1"), 6), target}, 1);
    if (writer == 1) write.slots[1].storage = 6;  // elsewhere
    if (writer == 2) write.slots[1].at = 16;      // a part of it
    if (writer == 3)
      write = {.boundary = "w.all_reduce",  // in flight or landed
               .slots = {at(in(5), 2)},
               .kind = EventKind::collective};
    log.add(write);
    log.add(op("m.sub", {at(in(77), 2), at(out(7), 4)}));
    // What w.write left is not what m.sub read either.
    EXPECT_EQ(check(log).findings.size(), writer < 2 ? 1u : 0u) << writer;
  }
}

// numpy's arrays have no block of their own: they are known by address.
TEST(Overwritten, AnArrayOnTheSameMemoryExcuses) {
  LogBuilder log;
  product(log, 5);
  log.add(op("np.copyto", {at(written(55, "arg0"), 2)}));
  log.add(op("m.sub", {at(in(55), 2), at(out(7), 4)}));
  log.log().slots.edit()[2].storage = 0;
  EXPECT_TRUE(check(log).findings.empty());
}

// The ring is filled behind the counter, by design, before its views are handed out.
TEST(Overwritten, ARingFilledBeforeItIsHandedOutIsNone) {
  LogBuilder log;
  for (uint64_t value : {11, 12, 13}) {
    handed_out(log, value);
    log.add(op("t.ne", {at(in(value), 7), at(out(40 + value), 8)}));
    log.add(op("t.embed", {at(in(value), 7), at(out(50 + value), 9)}));
  }
  EXPECT_TRUE(check(log).findings.empty());
}

// `buffer.to(device)` that need not move it: the same view comes out as went in.
TEST(Overwritten, ABufferThatIsHandedOnAsItIs) {
  for (bool race : {false, true}) {
    LogBuilder log;
    for (uint64_t value : {11, 12, 13}) {
      log.add(op("t.to", {at(in(value, "self"), 7), at(out(value), 7)}));
      log.add(op("t.ne", {at(in(value), 7), at(out(40 + value), 8)}));
      if (race) log.add(op("t.embed", {at(in(value == 12 ? 99 : value), 7)}));
    }
    EXPECT_EQ(check(log).findings.size(), race ? 1u : 0u);
  }
}

TEST(Overwritten, ARingOverwrittenWhileItIsRead) {
  for (bool used : {false, true}) {
    LogBuilder log;
    for (uint64_t value : {11, 12, 13}) {
      const uint64_t later = value == 12 ? 99 : value;
      handed_out(log, value);
      log.add(op("t.ne", {at(in(used ? value : later), 7), at(out(40 + value), 8)}));
      log.add(op("t.embed", {at(in(later), 7), at(out(50 + value), 9)}));
    }
    OverwrittenCheck found = check(log);
    ASSERT_EQ(found.findings.size(), 1u);
    EXPECT_EQ(found.findings[0].consumer.event, used ? 5u : 4u);
    EXPECT_EQ(found.findings[0].producer.event, 3u);
  }
}

// A view taken first and filled then: it is never read as it was handed out.
TEST(Overwritten, AViewFilledAfterItIsTakenIsNone) {
  LogBuilder log;
  uint64_t before = 10;
  for (uint64_t value : {11, 12, 13}) {
    handed_out(log, before);
    log.add(op("t.ne", {at(in(value), 7), at(out(40 + value), 8)}));
    log.add(op("t.embed", {at(in(value), 7), at(out(50 + value), 9)}));
    before = value;
  }
  EXPECT_TRUE(check(log).findings.empty());
}

// A static input: made once, filled anew for each round of the same readers.
TEST(Overwritten, AStaticInputIsNone) {
  for (bool inspected : {false, true}) {
    LogBuilder log;
    product(log, 10);
    if (inspected) log.add(op("t.print", {at(in(10), 2)}));
    for (uint64_t value : {11, 12, 13}) {
      log.add(op("t.ne", {at(in(value), 2), at(out(40 + value), 8)}));
      log.add(op("t.embed", {at(in(value), 2), at(out(50 + value), 9)}));
    }
    EXPECT_TRUE(check(log).findings.empty()) << inspected;
  }
}

// One writing shows in every view of the block; it is told once.
TEST(Overwritten, OneWritingIsOneFinding) {
  LogBuilder log;
  E views = op("l.unbind", {at(in(900, "self"), 7), at(out(1, "out0"), 7), at(out(2, "out1"), 7)});
  views.slots[0].shape = {8, 8};
  views.slots[2].at = 128;
  log.add(views);
  log.add(op("t.first", {at(in(1), 7)}));
  log.add(op("t.second", {at(in(91), 7)}));
  E third = op("t.third", {at(in(92), 7)});
  third.slots[0].at = 128;
  log.add(third);
  OverwrittenCheck found = check(log);
  ASSERT_EQ(found.findings.size(), 1u);
  EXPECT_EQ(found.findings[0].consumer.event, 2u);
  EXPECT_EQ(found.findings[0].readers, std::vector<EventRef>({{0, 3}}));
}

TEST(Overwritten, TheSamePlacesAreCounted) {
  LogBuilder log;
  for (uint64_t value : {5, 6, 7}) {
    product(log, value);
    log.add(op("m.sub", {at(in(value + 100), 2), at(out(7), 4)}));
  }
  OverwrittenCheck found = check(log);
  ASSERT_EQ(found.findings.size(), 1u);
  EXPECT_EQ(found.findings[0].times, 3u);
}

// What one operator returns was made by one inside it.
TEST(Overwritten, TheInnermostProducerIsNamed) {
  LogBuilder log;
  product(log, 5);
  E outer = op("m.block", {at(in(1), 1), at(out(5), 2)});
  outer.inside = 1;
  log.add(outer).add(op("m.sub", {at(in(55), 2), at(out(7), 4)}));
  OverwrittenCheck found = check(log);
  ASSERT_EQ(found.findings.size(), 1u);
  EXPECT_EQ(found.findings[0].producer.event, 0u);
  EXPECT_EQ(found.findings[0].seen.event, 1u);
}

TEST(Overwritten, ALogWithoutBlocksSaysSo) {
  LogBuilder log;
  log.add(op("m.mul", {in(1), out(2)})).add(op("m.sub", {in(3), out(4)}));
  opguard::Run run = timed(log);
  const Findings findings = check_single(run);
  EXPECT_TRUE(findings.empty());
  EXPECT_NE(format_findings(run, findings, false).find("the log numbers no memory"),
            std::string::npos);
}

TEST(Overwritten, ReportsOfOneRunAndOfTwo) {
  LogBuilder log;
  product(log, 5);
  log.add(op("x.other", {at(in(3), 9), at(out(4), 10)}, 1));
  log.add(op("m.sub", {at(in(55), 2), at(out(7), 4)}));
  Location place;
  place.file = "m.py", place.line = 4, place.callee = "torch.mul";
  log.at("m.mul", place);
  opguard::Run run = timed(log);
  const Findings findings = check_single(run);
  const std::string text = format_findings(run, findings, false);
  EXPECT_NE(text.find("1 operator read overwritten memory, 1 of 3 inputs"), std::string::npos);
  EXPECT_NE(text.find("finding: race in m.sub, forward, step 0, micro-batch 0, rank 0, slot arg0"),
            std::string::npos);
  EXPECT_NE(text.find("left by m.py:4"), std::string::npos);
  EXPECT_NE(text.find("the window: 11 us from m.py:4 torch.mul (left it) in thread 0 to m.sub"),
            std::string::npos);
  EXPECT_NE(text.find("thread 1  x.other"), std::string::npos);
  const std::string json = format_findings_json(run, findings);
  for (const char* part : {"\"check\": \"overwritten\"", "\"boundary\": \"m.sub\"",
                           "\"producer\": {", "\"window\": {", "\"reads_compared\": 1"})
    EXPECT_NE(json.find(part), std::string::npos) << part;

  Verdict verdict;
  verdict.candidates.push_back(
      {PivotKind::input, {}, {0, 2}, kNone, {{ReasonKind::made_by_nobody}}});
  verdict.candidates.push_back(
      {PivotKind::input, {}, {0, 1}, kNone, {{ReasonKind::made_by_nobody}}});
  add_overwritten_findings(run_of({}), run, {}, verdict);
  ASSERT_EQ(verdict.notes.size(), 1u);
  EXPECT_EQ(words(run_of({}), run, verdict.notes[0]),
            "run b: memory that torch.mul at m.py:4 left was overwritten, by no recorded operator, "
            "before m.sub at m.sub read it; `opguard align --single` on its logs shows it");
  EXPECT_EQ(verdict.candidates[0].kind, PivotKind::race);
  EXPECT_EQ(
      verdict.candidates[0].why,
      (Reasons{{ReasonKind::made_by_nobody}, {.kind = ReasonKind::reads_overwritten, .side = 1}}));
  EXPECT_EQ(verdict.candidates[1].kind, PivotKind::input);
}

// A batch handed out in two views; `mask` reads one of them, then `embed` finds the other changed.
opguard::Run batch(bool overwritten, uint32_t writer) {
  LogBuilder log;
  for (uint64_t round = 0; round < 3; ++round) {
    const uint64_t n = 20 * round;
    S ring = at(in(900 + n, "self"), 7);
    ring.shape = {2, 4, 8};
    S first = at(out(1 + n), 7), second = at(out(2 + n, "out1"), 7);
    second.at = 128;
    log.add(op("l.unbind", {ring, first, second}));
    log.add(op("t.mask", {at(in(1 + n), 7), at(out(3 + n), 8)}));
    log.add(op("l.randperm", {at(out(50 + n), 9)}, writer));
    S read = second;
    read.kind = SlotKind::in, read.value = overwritten && round == 1 ? 99 : 2 + n;
    log.add(op("m.embed", {read, at(out(4 + n), 10)}));
  }
  return timed(log);
}

Verdict moved(const opguard::Run& a, const opguard::Run& b) {
  Verdict verdict;
  verdict.candidates.push_back(
      {PivotKind::input, {0, 7}, {0, 7}, kNone, {{ReasonKind::made_by_nobody}}});
  add_overwritten_findings(a, b, align_runs(a, b), verdict);
  return verdict;
}

TEST(Overwritten, BesideAnotherThreadThePivotIsTheFirstUse) {
  const opguard::Run a = batch(false, 1), b = batch(true, 1);
  const Verdict verdict = moved(a, b);
  ASSERT_EQ(verdict.candidates.size(), 2u);
  EXPECT_EQ(verdict.candidates[0].kind, PivotKind::race);
  EXPECT_EQ(verdict.candidates[0].a, (EventRef{0, 5}));  // mask, of the same round
  EXPECT_EQ(verdict.candidates[0].b, (EventRef{0, 5}));
  EXPECT_EQ(verdict.candidates[1].b, (EventRef{0, 7}));  // embed, which saw it
  EXPECT_EQ(verdict.candidates[0].shown[1], (EventRef{0, 7}));
  EXPECT_EQ(verdict.candidates[0].shown_as, PivotKind::race);
  EXPECT_EQ(verdict.candidates[1].kind, PivotKind::race);
}

TEST(Overwritten, InOneThreadThePivotIsTheReader) {
  const opguard::Run a = batch(false, 0), b = batch(true, 0);
  const Verdict verdict = moved(a, b);
  ASSERT_EQ(verdict.candidates.size(), 1u);
  EXPECT_EQ(verdict.candidates[0].b, (EventRef{0, 7}));
  EXPECT_EQ(verdict.candidates[0].kind, PivotKind::race);
}

}  // namespace
}  // namespace opguard::test
