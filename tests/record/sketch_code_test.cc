// Sketches in the log: what is written is read, to the precision that is promised; what is damaged
// is refused.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "record/format.h"
#include "record/record.h"
#include "record/sketch_code.h"
#include "record/writer.h"
#include "sample.h"

namespace opguard {
namespace {

Sketch random_sketch(uint64_t seed, double scale) {
  std::mt19937_64 random(seed);
  Sketch sketch;
  for (double& y : sketch.sums) y = scale * std::normal_distribution<>()(random);
  return sketch;
}

// An event's entry behind its index: one slot with its own sketch and a grid.
std::string entry(uint32_t module, uint32_t slot, const Sketch& own, const SketchSet& grid,
                  unsigned bits) {
  std::string out;
  format::put_varint(out, module + 1);
  format::put_varint(out, 0);  // no calls
  format::put_varint(out, 1);
  format::put_varint(out, slot);
  format::put_varint(out, 2);
  put_sketch_set(out, {SketchSetKind::whole, {}, 0, {own}}, bits);
  put_sketch_set(out, grid, bits);
  return out;
}

SketchSet grid_of(uint64_t seed, size_t cells) {
  SketchSet set{SketchSetKind::grid, {4, 64}, 0, {}};
  for (size_t i = 0; i < cells; ++i) set.sketches.push_back(random_sketch(seed + i, 1));
  return set;
}

double largest(const Sketch& sketch) {
  double most = 0;
  for (double y : sketch.sums) most = std::max(most, std::fabs(y));
  return most;
}

void expect_near(const Sketch& read, const Sketch& written, unsigned bits) {
  const double allowed = std::ldexp(largest(written), 1 - static_cast<int>(bits));
  for (size_t i = 0; i < kSketchNumbers; ++i)
    ASSERT_NEAR(read.sums[i], written.sums[i], allowed) << i;
}

std::string write_events(const TempDir& dir, uint32_t events, unsigned bits, double scale) {
  LogWriter writer;
  writer.open(dir.path(), 0, 1, 4711, 5);
  for (uint32_t i = 0; i < events; ++i) {
    const uint32_t module = writer.string("layers." + std::to_string(i % 3));
    std::vector<Slot> slots = sample_slots(writer, 3);
    writer.add(sample_event(writer, i), slots,
               i % 4 == 3 ? std::string()
                          : entry(module, i % 3, random_sketch(i, scale), grid_of(i, i % 5), bits));
  }
  EXPECT_TRUE(writer.close());
  return writer.path();
}

TEST(SketchCode, WhatIsWrittenIsRead) {
  for (unsigned bits : {kWideSketch, kNarrowSketch})
    for (double scale : {1.0, 1e-30, 1e30, 1e-320}) {
      TempDir dir;
      const uint32_t events = 500;
      const std::string path = write_events(dir, events, bits, scale);
      ProcessLog log;
      std::string error;
      ASSERT_TRUE(read_log(path, log, error)) << error;
      ASSERT_TRUE(log.closed);
      EXPECT_EQ(log.sketches.size(), events / 4 * 3);
      for (uint32_t i = 0; i < events; ++i) {
        const EventSketches read = log.sketches.of_event(i);
        if (i % 4 == 3) {
          EXPECT_EQ(read, EventSketches{});
          continue;
        }
        EXPECT_EQ(log.text(read.module), "layers." + std::to_string(i % 3));
        ASSERT_EQ(read.slots.size(), 1u);
        EXPECT_EQ(read.slots[0].slot, i % 3);
        ASSERT_EQ(read.slots[0].sets.size(), 2u);
        expect_near(read.slots[0].sets[0].sketches[0], random_sketch(i, scale), bits);
        const SketchSet& grid = read.slots[0].sets[1];
        EXPECT_EQ(grid.kind, SketchSetKind::grid);
        EXPECT_EQ(grid.local, (std::vector<int64_t>{4, 64}));
        ASSERT_EQ(grid.sketches.size(), i % 5);
        for (size_t c = 0; c < grid.sketches.size(); ++c)
          expect_near(grid.sketches[c], random_sketch(i + c, 1), bits);
      }
    }
}

// Of a slot's pieces those that a rank of that shape may hold, and always its own sketch.
TEST(SketchCode, OnlyThePiecesThatAreAskedFor) {
  std::string out;
  format::put_varint(out, 7);
  out += entry(0, 5, random_sketch(1, 1), grid_of(2, 3), kWideSketch);
  SketchTable table;
  ASSERT_EQ(table.add(out, 1, 1), "");
  table.finish(8);
  const std::vector<SketchSet> all = table.of_event(7).slots.at(0).sets;
  const EventCode code = table.code_of_event(7);
  EXPECT_EQ(code.module, 0u);
  ASSERT_EQ(code.slots.size(), 1u);
  EXPECT_EQ(code.slots[0].slot, 5u);
  EXPECT_EQ(sets_of(code.slots[0], {{4, 64}}), all);
  for (const std::vector<int64_t>& other : {std::vector<int64_t>{}, {2, 64}, {4, 64, 1}})
    EXPECT_EQ(sets_of(code.slots[0], {other}), std::vector<SketchSet>{all[0]});
  EXPECT_TRUE(table.code_of_event(6).slots.empty());
}

// What is declared is a string of the log: two bytes beside the sketch, and none for who asks for
// sketches alone.
TEST(SketchCode, WhatIsDeclared) {
  std::string out, sets;
  put_sketch_set(sets, {SketchSetKind::whole, {}, 0, {random_sketch(1, 1)}}, kWideSketch);
  for (const uint64_t head : {uint64_t{7}, uint64_t{0}, uint64_t{0}, uint64_t{2}, uint64_t{0}, uint64_t{1}})
    format::put_varint(out, head);  // slot 0 has one set
  out += sets;
  for (const uint64_t head : {uint64_t{4}, uint64_t{2}})
    format::put_varint(out, head);  // slot 4 has one more
  out += sets;
  const size_t before = out.size();
  put_declared(out, 5);
  EXPECT_EQ(out.size() - before, 2u);
  SketchTable table;
  EXPECT_EQ(table.add(out, 1, 5), "it names a string that is not there");
  ASSERT_EQ(table.add(out, 1, 6), "");
  table.finish(8);
  const EventCode code = table.code_of_event(7);
  ASSERT_EQ(code.slots.size(), 2u);
  EXPECT_EQ(code.slots[0].declared, kNone);
  EXPECT_EQ(code.slots[1].declared, 5u);
  EXPECT_EQ(sets_of(code.slots[0], {}), sets_of(code.slots[1], {}));
  const EventSketches read = table.of_event(7);
  EXPECT_EQ(read.slots[1].declared, 5u);
  EXPECT_EQ(read.slots[0].sets, read.slots[1].sets);
}

// An event 7 with a module, no callers and one slot: its own sketch, and an uneven set.
std::string uneven_entry(const SketchSet& set) {
  std::string out;
  for (const uint64_t n : {7, 1, 0, 1, 5, 2}) format::put_varint(out, n);
  put_sketch_set(out, {SketchSetKind::whole, {}, 0, {random_sketch(1, 1)}}, kWideSketch);
  put_sketch_set(out, set, kWideSketch);
  return out;
}

// Where the pieces of an uneven set begin comes with it; its pieces are asked for by their shape.
TEST(SketchCode, UnevenPiecesSayWhereTheyBegin) {
  SketchSet set{SketchSetKind::uneven, {4, 64}, 0, {}, {{0, 4, 8}, {0, 64}}};
  for (uint64_t i = 0; i < 6; ++i) set.sketches.push_back(random_sketch(i, 1));
  for (const uint8_t outer : {0, 2}) {
    set.dim = outer;
    if (outer != 0) set.starts.insert(set.starts.begin(), {0});
    SketchTable table;
    ASSERT_EQ(table.add(uneven_entry(set), 1, 1), "");
    table.finish(8);
    const EventCode code = table.code_of_event(7);
    const std::vector<SketchSet> sets = sets_of(code.slots.at(0), {{2, 64}, {4, 64}});
    ASSERT_EQ(sets.size(), 2u);
    EXPECT_EQ(sets[1].kind, SketchSetKind::uneven);
    EXPECT_EQ(sets[1].dim, outer);
    EXPECT_EQ(sets[1].starts, set.starts);
    ASSERT_EQ(sets[1].sketches.size(), 6u);
    expect_near(sets[1].sketches[5], random_sketch(5, 1), kWideSketch);
    EXPECT_EQ(sets_of(code.slots[0], {{2, 64}}).size(), 1u);
  }
}

// As many sketches as the starts say, and none of a product that no log has.
TEST(SketchCode, UnevenPiecesThatDoNotFitTheirStartsAreRefused) {
  SketchSet set{SketchSetKind::uneven, {4, 64}, 0, {random_sketch(1, 1)}, {{0, 4}, {0}}};
  EXPECT_NE(SketchTable().add(uneven_entry(set), 1, 1), "");
  set.starts = {{0}, {0}};
  EXPECT_EQ(SketchTable().add(uneven_entry(set), 1, 1), "");
  const std::string whole = uneven_entry(set);
  for (size_t cut = 1; cut < whole.size(); ++cut)
    EXPECT_NE(SketchTable().add(whole.substr(0, cut), 1, 1), "");
}

// A tensor whose pieces come first is none that anything is told of.
TEST(SketchCode, PiecesWithoutTheWhole) {
  std::string out;
  format::put_varint(out, 1);
  put_sketch_set(out, grid_of(2, 3), kWideSketch);
  EXPECT_TRUE(sets_of({0, out}, {{4, 64}}).empty());
}

// A limit that is exceeded is told, and nothing else is.
TEST(Sketch, DistanceWithinALimit) {
  for (uint64_t seed = 0; seed < 300; ++seed) {
    const SketchSums y = random_sketch(seed, 1).sums;
    SketchSums z = random_sketch(seed + 1000, 1).sums;
    if (seed % 2 == 0)  // nearly the same
      for (size_t i = 0; i < kSketchNumbers; ++i) z[i] = y[i] * (1 + 1e-7 * z[i]);
    const double far = distance(y, z, 2);
    double square = 0;
    for (size_t i = 0; i < kSketchNumbers; ++i) square += (y[i] - 2 * z[i]) * (y[i] - 2 * z[i]);
    EXPECT_NEAR(far, std::sqrt(square), 1e-14 * far);
    EXPECT_EQ(distance_within(y, z, 2, far), far);
    EXPECT_EQ(distance_within(y, z, 2, far * 3), far);
    EXPECT_GT(distance_within(y, z, 2, far * (1 - 1e-9)), far * (1 - 1e-9));
    EXPECT_EQ(distance_within(y, z, 2, far / 2), std::numeric_limits<double>::infinity());
  }
}

TEST(SketchCode, ZerosAndWhatIsNotFinite) {
  Sketch zeros, counted = random_sketch(3, 1);
  counted.positive_infinite = 1;
  counted.not_a_number = 70'000;
  for (const Sketch& sketch : {zeros, counted}) {
    std::string out;
    format::put_varint(out, 7);  // the event
    format::put_varint(out, 0);  // no module
    format::put_varint(out, 0);  // no calls
    format::put_varint(out, 1);
    format::put_varint(out, 0);
    format::put_varint(out, 1);
    put_sketch_set(out, {SketchSetKind::whole, {}, 0, {sketch}}, kWideSketch);
    SketchTable table;
    ASSERT_EQ(table.add(out, 1, 0), "");
    table.finish(8);
    const Sketch read = table.of_event(7).slots.at(0).sets.at(0).sketches.at(0);
    EXPECT_EQ(read.positive_infinite, sketch.positive_infinite);
    EXPECT_EQ(read.negative_infinite, 0u);
    EXPECT_EQ(read.not_a_number, sketch.not_a_number);
    expect_near(read, sketch, kWideSketch);
  }
}

TEST(SketchCode, SizesAreAsPromised) {
  std::string wide, narrow;
  put_sketch(wide, random_sketch(1, 1), kWideSketch);
  put_sketch(narrow, random_sketch(1, 1), kNarrowSketch);
  EXPECT_LE(wide.size(), 323u);
  EXPECT_LE(narrow.size(), 195u);
}

// A chunk that ends anywhere, or says more than it holds, gives nothing.
TEST(SketchCode, WhatIsCutIsRefused) {
  std::string out;
  format::put_varint(out, 0);
  out += entry(0, 0, random_sketch(1, 1), grid_of(2, 3), kNarrowSketch);
  for (size_t bytes = 0; bytes < out.size(); ++bytes) {
    SketchTable table;
    EXPECT_NE(table.add(std::string_view(out).substr(0, bytes), 1, 1), "") << bytes;
    EXPECT_TRUE(table.empty());
  }
  SketchTable table;
  EXPECT_EQ(table.add(out, 1, 1), "");
  EXPECT_NE(table.add(out, 2, 1), "");
  EXPECT_EQ(table.add(out, 1, 0), "it names a string that is not there");
  EXPECT_EQ(table.size(), 1u);
}

// Of a log that was cut, the sketches of events that are gone are gone too.
TEST(SketchCode, OfALogThatWasCut) {
  TempDir dir;
  const std::string bytes = read_bytes(write_events(dir, 4000, kWideSketch, 1));
  ProcessLog log;
  std::string error;
  for (size_t part : {3, 5, 9}) {
    ASSERT_TRUE(parse_log(std::string_view(bytes).substr(0, bytes.size() * part / 10), log, error));
    EXPECT_FALSE(log.closed);
    EXPECT_GT(log.sketches.size(), 0u);
    for (uint64_t i = 0; i < log.sketches.size(); ++i)
      EXPECT_LT(log.sketches.event(i), log.events.size());
  }
}

}  // namespace
}  // namespace opguard
