#include "record/dump.h"

#include <gtest/gtest.h>

#include <sstream>

#include "record/sample.h"

namespace opguard {
namespace {

constexpr uint64_t kNoLimit = std::numeric_limits<uint64_t>::max();

// The log of `count` sample events, read from disk.
ProcessLog sample(uint32_t count) {
  TempDir dir;
  LogWriter writer;
  write_sample(writer, dir.path(), count, count);
  writer.close();
  ProcessLog log;
  std::string error;
  EXPECT_TRUE(read_log(dir.path() + "/rank3-1763700000000000000-4711.log", log, error)) << error;
  return log;
}

std::string dump_of(const ProcessLog& log, const EventSelection& selection,
                    uint64_t limit = kNoLimit) {
  std::string text;
  dump(log, selection, limit, [&](std::string_view piece) {
    text += piece;
    return true;
  });
  return text;
}

// "0 1 5": the events of a dump.
std::string events(const std::string& text) {
  std::istringstream lines(text);
  std::string found, line;
  while (std::getline(lines, line))
    if (line.starts_with("  ") && line[7] != ' ')
      found += (found.empty() ? "" : " ") +
               line.substr(line.find_first_not_of(' '), 9)
                   .substr(0, line.find(' ', 7) - line.find_first_not_of(' '));
  return found;
}

TEST(Dump, WholeLog) {
  EXPECT_EQ("\n" + dump(sample(6)), R"(
log rank 3 of 8, pid 4711, 6 events, 7 records, 0 lost, closed
setting seed = 7
setting torch = 2.13.0
location a.add:k1l2 timm/a.py:3 in Block.forward
       0 op         forward   step 0.0   attention.softmax:q7k0 #0
         scalars dim=-0
         results out1="\x0a\x1b[31m"
       1 node       recompute step 0.1   attention.softmax:q7k1 #1 thread 1 inside 0..0 node MulBackward0 of event 0 raised
         in      arg0             float32[1, 0, 7]       unreadable                        v1 storage 2
       2 accumulate backward  step 0.0   attention.softmax:q7k2 #2 inside 1..1 collective number 2
         in      arg0             float32[2, 0, 7]       0369d0369d0369cd:ffffffffffffffff v2 storage 4 model-value
         out     arg1             float32[2, 0, 7]       0369d0369d0369cd:fffffffffffffffe v2 model-value parameter
       3 loss       optimizer step 1.1   attention.softmax:q7k0 #3 thread 1 inside 1..2 node MulBackward0 of event 1 raised collective group 0-3 number 3
         scalars dim=-3
         in      arg0             float32[3, 0, 7]       unreadable                        v3 storage 1 model-value
         out     arg1             float32[3, 0, 7]       unreadable                        v3 storage 2 model-value parameter
         written arg2             float32[3, 0, 7]       unreadable                        v3 storage 3 model-value mask
       4 optimizer  forward   step 1.0   attention.softmax:q7k1 #4 inside 2..3 stream 1 for 4 ns
         results out1="\x0a\x1b[31m"
       5 op         recompute step 1.1   attention.softmax:q7k2 #5 thread 1 inside 2..4 node MulBackward0 of event 2 raised
         in      arg0             float32[5, 0, 7]       unreadable                        v5 uninitialised
)");
}

TEST(Dump, ControlCharactersAreEscaped) {
  EXPECT_EQ(dump(sample(12)).find('\x1b'), std::string::npos);
}

TEST(Dump, OrdinaryLinesFitTheirColumns) {
  ProcessLog log = sample(1);
  log.metas = {{"bfloat16", "cpu", {64, 1024, 768}}};
  log.strings.push_back("param:0.weight");
  Slot slot;
  slot.meta = 0;
  slot.name = static_cast<uint32_t>(log.strings.size() - 1);
  slot.version = 12;
  slot.storage = 3456;
  slot.flags = kModelValue;
  slot.value = {~uint64_t{0}, 1};
  log.slots.edit() = {slot};
  log.events.edit()[0].slot_count = 1;
  std::istringstream lines(dump_of(log, {.steps = {{0, 0}}}));
  for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 120u) << line;
}

TEST(Dump, Selections) {
  const ProcessLog log = sample(12);
  EXPECT_EQ(events(dump_of(log, {})), "0 1 2 3 4 5 6 7 8 9 10 11");
  EXPECT_EQ(events(dump_of(log, {.boundaries = {"attention.softmax:q7k1"}})), "1 4 7 10");
  EXPECT_EQ(events(dump_of(log, {.boundaries = {"*k1", "?ttention*k2"}})), "1 2 4 5 7 8 10 11");
  EXPECT_EQ(events(dump_of(log, {.boundaries = {"softmax"}})), "");
  EXPECT_EQ(events(dump_of(log, {.boundaries = {"*k1,step=1", "*k2@2"}})), "2 4");
  EXPECT_EQ(events(dump_of(log, {.boundaries = {"*,phase=recompute,kind=node"}})), "1");
  EXPECT_EQ(events(dump_of(log, {.boundaries = {"*,rank=2"}})), "");
  EXPECT_EQ(events(dump_of(log, {.phases = {Phase::recompute, Phase::optimizer}})), "1 3 5 7 9 11");
  EXPECT_EQ(events(dump_of(log, {.steps = {{1, 2}}})), "3 4 5 6 7 8");
  EXPECT_EQ(events(dump_of(log, {.ranks = {2, 3}, .steps = {{3, 3}}})), "9 10 11");
  EXPECT_EQ(dump_of(log, {.ranks = {2}}), "");
  EXPECT_EQ(events(dump_of(log, {}, 3)), "0 1 2");
  EXPECT_EQ(events(dump_of(log, {.steps = {{1, 2}}}, 2)), "3 4");
}

TEST(Dump, OfASelectionIsToldWhatIsWrong) {
  EXPECT_EQ(event_selection_fault("a.*@3,kind=op"), "");
  EXPECT_EQ(event_selection_fault("a,pase=x"), "'a,pase=x', column 3: unknown key 'pase'");
  EXPECT_EQ(event_selection_fault("a@3:out0"),
            "'a@3:out0': events are shown whole, without a slot");
}

TEST(Dump, SelectedEventsComeWithoutTheLogsContext) {
  const ProcessLog log = sample(12);
  EXPECT_NE(dump_of(log, {}).find("setting torch = 2.13.0"), std::string::npos);
  EXPECT_EQ(dump_of(log, {.steps = {{1, 2}}}).find("setting"), std::string::npos);
}

TEST(Dump, ComesInPieces) {
  const ProcessLog log = sample(3000);
  size_t pieces = 0, largest = 0;
  uint64_t limit = kNoLimit;
  std::string text;
  dump(log, {}, limit, [&](std::string_view piece) {
    ++pieces;
    largest = std::max(largest, piece.size());
    text += piece;
    return true;
  });
  EXPECT_EQ(text, dump(log));
  EXPECT_GT(pieces, 3u);
  EXPECT_LT(largest, size_t{1} << 17);
  pieces = 0;
  dump(log, {}, limit, [&](std::string_view) { return ++pieces < 2; });
  EXPECT_EQ(pieces, 2u) << "nothing is made once nobody wants it";
}

}  // namespace
}  // namespace opguard
