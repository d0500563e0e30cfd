#include "align/values/changed_readers.h"

#include <gtest/gtest.h>

#include "align/builder.h"

namespace opguard::test {
namespace {

S at(S slot, uint32_t storage, uint32_t version = 0) {
  slot.storage = storage;
  slot.version = version;
  return slot;
}

std::vector<EventRef> readers(LogBuilder& log, uint32_t last) {
  const opguard::Run run = run_of({log.log()});
  const ValueIndex index(run);
  return ChangedReaders(index).until({0, last});
}

TEST(ChangedReaders, OfOtherBytesThatNobodyMade) {
  LogBuilder log;
  log.add({"m.mul:1", {at(in(1), 1), at(out(5), 2)}});
  log.add({"m.add:2", {at(in(5), 2), at(out(6), 3)}});
  log.add({"m.sub:3", {at(in(55), 2), at(out(7), 4)}});
  log.add({"m.sub:4", {at(in(55), 2), at(out(8), 5)}});  // as the one before it found them
  EXPECT_EQ(readers(log, 3), (std::vector<EventRef>{{0, 2}}));
  EXPECT_EQ(readers(log, 2), (std::vector<EventRef>{{0, 2}}));
  EXPECT_TRUE(readers(log, 1).empty());
}

// Asked for a later event and then for an earlier one: each gets what lies before it.
TEST(ChangedReaders, InWhateverOrderTheyAreAsked) {
  LogBuilder log;
  log.add({"m.mul:1", {at(out(5), 2)}});
  log.add({"m.add:2", {at(in(55), 2)}});
  log.add({"m.add:3", {at(in(56), 2)}});
  const opguard::Run run = run_of({log.log()});
  const ValueIndex index(run);
  const ChangedReaders changed(index);
  EXPECT_EQ(changed.until({0, 2}), (std::vector<EventRef>{{0, 1}, {0, 2}}));
  EXPECT_EQ(changed.until({0, 1}), (std::vector<EventRef>{{0, 1}}));
}

TEST(ChangedReaders, ARecordedChangeIsNone) {
  for (const S& read : {at(in(55), 2, /*version=*/1), at(in(55), 9), at(in(1), 2)}) {
    LogBuilder log;
    log.add({"m.zero:1", {at(out(1), 1)}});
    log.add({"m.mul:2", {at(out(5), 2)}});
    log.add({"m.add:3", {read}});  // counted; in another block; a value somebody made before
    EXPECT_TRUE(readers(log, 2).empty());
  }
}

}  // namespace
}  // namespace opguard::test
