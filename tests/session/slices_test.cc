// What --slices reads is made of a log's shapes, and a log says by a checksum with which it was
// made.
#include "session/slices.h"

#include <gtest/gtest.h>

#include <fstream>

#include "align/builder.h"
#include "scratch.h"

namespace opguard {
namespace {

Run ranks(int32_t count) {
  opguard::Run run;
  for (int32_t rank = 0; rank < count; ++rank) {
    ProcessLog log;
    log.rank = rank;
    log.metas = {{"float32", "cpu", {8, 64}}, {"float32", "cpu", {}}, {"int64", "cpu", {8, 64}}};
    run.processes.push_back(std::move(log));
  }
  return run;
}

TEST(Slices, AreTheShapesThatRanksHoldOnceEach) {
  EXPECT_EQ(slices_of(ranks(2)), "world 2\nshape 8 64\n");
}

TEST(Slices, OfOneProcessAreNone) { EXPECT_EQ(slices_of(ranks(1)), "world 1\n"); }

// Of several dimensions alone: a vector has no other order.
TEST(Slices, OfAPortAreShapesToBeExchanged) {
  EXPECT_EQ(slices_of(ranks(1), /*port=*/true), "world 1\nexchange 8 64\n");
}

// A run of operators with one result each: boundary and type.
Run typed(const std::vector<std::pair<std::string, std::string>>& results) {
  test::LogBuilder log;
  for (const auto& [boundary, type] : results) {
    test::S made = test::out(1);
    made.dtype = type;
    log.add({.boundary = boundary, .slots = {made}});
  }
  opguard::Run run;
  run.processes.push_back(log.log());
  return run;
}

TEST(Slices, TellTheTypesOfARunThatIsNarrow) {
  const std::pair<std::string, std::string> wide = {"m.cos:bbbb", "float32"},
                                            narrow = {"m.mul:aaaa", "bfloat16"};
  EXPECT_EQ(types_of(typed({narrow, wide})),
            "type m.cos:bbbb float32\ntype m.mul:aaaa bfloat16\ntype * bfloat16\n");
  EXPECT_EQ(types_of(typed({narrow, wide, wide, wide})), "");
}

// One rank that holds `shape` of a parameter, and of a result.
ProcessLog holding(int32_t rank, const std::vector<int64_t>& shape) {
  test::LogBuilder log(rank);
  test::S parameter = test::in(1), made = test::out(2);
  parameter.name = "param:emb";
  parameter.shape = made.shape = shape;
  log.add({.boundary = "<parameters>", .slots = {parameter}, .kind = EventKind::state});
  log.add({.boundary = "m.mul:aaaa", .slots = {made}});
  return log.log();
}

TEST(Slices, TellUnequalPartsInTheOrderOfTheRanks) {
  opguard::Run run;
  for (const auto& [rank, rows] : {std::pair{1, 26}, {0, 26}, {3, 0}, {2, 25}})
    run.processes.push_back(holding(rank, {rows, 8}));
  const std::string text = slices_of(run);
  EXPECT_NE(text.find("\nparts 26 26 25 0\n"), std::string::npos) << text;
  EXPECT_EQ(text.find("parameter"), std::string::npos) << text;
  EXPECT_EQ(even_slices_of(run), text.substr(0, text.find("parts")));
}

// Whether 26 rows are a part of 104 or of 103 only the reference tells.
TEST(Slices, TellWhatMayBePadded) {
  opguard::Run candidate, padded, even;
  for (const int32_t rank : {0, 1, 2, 3}) candidate.processes.push_back(holding(rank, {26, 8}));
  const std::string text = slices_of(candidate);
  EXPECT_NE(text.find("\nparameter 26x8 emb\n"), std::string::npos) << text;
  EXPECT_EQ(text.find("parts"), std::string::npos) << text;
  padded.processes.push_back(holding(0, {103, 8}));
  even.processes.push_back(holding(0, {104, 8}));
  EXPECT_EQ(pads_of(padded, candidate), "world 1\npad 103 26\n");
  EXPECT_EQ(pads_of(even, candidate), "");
}

// zlib.crc32 of the same text, as the recorder writes it (python/opguard/record/recording.py).
TEST(Slices, AreToldByTheirChecksum) {
  EXPECT_EQ(slices_digest("world 2\nshape 8 64\n"), "8973aa4b");
}

TEST(Slices, OfAFileAreThatFile) {
  const std::string scratch = make_scratch().string();
  const std::string given = scratch + "/shapes.txt", other = scratch + "/other.txt";
  std::ofstream(given) << "world 2\n";
  auto file = slices_file(given, other);
  ASSERT_TRUE(bool(file));
  EXPECT_EQ(*file, given);
  EXPECT_FALSE(std::ifstream(other).good());
}

TEST(Slices, OfAFolderWithoutLogsAreAnError) {
  const std::string scratch = make_scratch().string();
  auto file = slices_file(scratch, scratch + "/slices.txt");
  ASSERT_FALSE(bool(file));
  EXPECT_NE(llvm::toString(file.takeError()).find(scratch), std::string::npos);
}

}  // namespace
}  // namespace opguard
