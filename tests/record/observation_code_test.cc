#include "record/observation_code.h"

#include <gtest/gtest.h>

#include <bit>
#include <random>

#include "record/crc.h"
#include "record/format.h"
#include "record/sample.h"

namespace opguard {
namespace {

// A row as it is written and as it should come back: its schema's number, its head, its values, of
// which so many are written.
struct Row {
  ObservedHead head;
  std::vector<ObservedValue> values;
  std::string code;
};

bool same(const ObservedValue& x, const ObservedValue& y) {
  return x.kind == y.kind && x.text == y.text && x.bits == y.bits;
}

// A schema of `fields` fields; returns its number.
uint32_t schema_of(LogWriter& writer, const std::string& kind, size_t fields) {
  ObservationSchema schema;
  schema.kind = writer.string(kind);
  for (size_t i = 0; i < fields; ++i)
    schema.fields.push_back(writer.string("field" + std::to_string(i)));
  return writer.schema(schema);
}

class Rows {
 public:
  explicit Rows(uint64_t seed) : random_(seed) {}

  uint64_t below(uint64_t n) { return random_() % n; }

  Row make(LogWriter& writer, uint32_t schema, size_t fields, uint64_t events) {
    Row row;
    row.head = {schema, step_ += static_cast<uint32_t>(below(2)), events, time_ += 1000, 0, 0};
    const size_t given = below(fields + 1);
    for (size_t i = 0; i < given; ++i) value(writer, row.values, 0);
    for (const ObservedValue& value : row.values) put_value(row.code, value);
    row.head.values = static_cast<uint32_t>(given);
    row.head.bytes = static_cast<uint32_t>(row.code.size());
    row.values.resize(row.values.size() + fields - given);
    return row;
  }

 private:
  void value(LogWriter& writer, std::vector<ObservedValue>& into, int depth) {
    ObservedValue value;
    value.kind = static_cast<ObservedKind>(below(depth < 3 ? 8 : 7));
    switch (value.kind) {
      case ObservedKind::integer:
        value.integer = static_cast<int64_t>(random_() >> below(64)) * (below(2) ? 1 : -1);
        break;
      case ObservedKind::real:
        value.bits = below(2) ? random_() : std::bit_cast<uint64_t>(0.5 * double(below(9)));
        break;
      case ObservedKind::bits:
        value.bits = random_();
        break;
      case ObservedKind::text:
        value.text = writer.string("text" + std::to_string(below(100)));
        break;
      case ObservedKind::list:
        value.text = static_cast<uint32_t>(below(5) ? below(4) : below(40));
        break;
      default:
        break;
    }
    into.push_back(value);
    if (value.kind == ObservedKind::list)
      for (uint32_t i = 0; i < value.text; ++i) this->value(writer, into, depth + 1);
  }

  std::mt19937_64 random_;
  uint32_t step_ = 0;
  int64_t time_ = 0;
};

void expect_row(const Observation& found, const Row& row, size_t fields, const char* what) {
  EXPECT_EQ(found.schema, row.head.schema) << what;
  EXPECT_EQ(found.step, row.head.step) << what;
  EXPECT_EQ(found.event, row.head.event) << what;
  EXPECT_EQ(found.time_ns, row.head.time_ns) << what;
  ASSERT_EQ(found.starts.size(), fields) << what;
  ASSERT_EQ(found.values.size(), row.values.size()) << what;
  for (size_t i = 0; i < row.values.size(); ++i)
    ASSERT_TRUE(same(found.values[i], row.values[i])) << what << " " << i;
}

constexpr size_t kFields[] = {0, 1, 6, 40};

// A log of both, and what its reader should find. A chunk every few rows.
std::string log_of(uint64_t seed, uint32_t rows, std::vector<Row>& expected, uint32_t chunk) {
  TempDir dir;
  WriterLimits limits;
  limits.thread = false;
  LogWriter writer(limits);
  EXPECT_TRUE(writer.open(dir.path(), 0, 1, 1, 1));
  std::vector<uint32_t> schemas;
  for (const size_t fields : kFields) schemas.push_back(schema_of(writer, "kind", fields));
  Rows make(seed);
  for (uint32_t i = 0; i < rows; ++i) {
    if (i % 3 == 0) writer.add(sample_event(writer, i / 3), sample_slots(writer, i / 3));
    const size_t which = make.below(4);
    expected.push_back(make.make(writer, schemas[which], kFields[which], writer.events()));
    EXPECT_TRUE(writer.observe(expected.back().head, expected.back().code));
    if (i % chunk == chunk - 1) writer.flush();
  }
  EXPECT_TRUE(writer.close());
  EXPECT_EQ(writer.made(), writer.written());
  return read_bytes(writer.path());
}

TEST(Observations, ComeBackAsTheyWereMade) {
  std::vector<Row> expected;
  const std::string bytes = log_of(1, 2000, expected, 300);
  ProcessLog log;
  std::string error;
  ASSERT_TRUE(parse_log(bytes, log, error)) << error;
  EXPECT_EQ(log.damage, "");
  EXPECT_TRUE(log.closed);
  ASSERT_EQ(log.observations.size(), expected.size());
  ASSERT_EQ(log.observations.schemas().size(), 4u);
  EXPECT_EQ(log.text(log.observations.schemas()[2].fields[5]), "field5");
  for (int again = 0; again < 2; ++again) {
    ObservationCursor rows(log.observations);
    size_t i = 0;
    for (Observation row; rows.next(row); ++i)
      expect_row(row, expected[i], kFields[row.schema], "row");
    EXPECT_EQ(i, expected.size());
  }
}

TEST(Observations, AFieldIsFoundAndWhatIsMissingIsNone) {
  TempDir dir;
  LogWriter writer;
  ASSERT_TRUE(writer.open(dir.path(), 0, 1, 1, 1));
  const uint32_t schema = schema_of(writer, "api", 3);
  std::string code;
  ObservedValue list;
  list.kind = ObservedKind::list;
  list.text = 2;
  for (const ObservedValue& value : {list, observed_integer(8), observed_real(0.1)})
    put_value(code, value);
  writer.observe({schema, 3, 0, 5, 1, static_cast<uint32_t>(code.size())}, code);
  ASSERT_TRUE(writer.close());
  ProcessLog log;
  std::string error;
  ASSERT_TRUE(read_log(writer.path(), log, error)) << error;
  ObservationCursor rows(log.observations);
  Observation row;
  ASSERT_TRUE(rows.next(row));
  ASSERT_EQ(row.field(0).size(), 3u);
  EXPECT_EQ(row.field(0)[1].integer, 8);
  EXPECT_EQ(row.field(0)[2].real, 0.1);
  for (const size_t missing : {1, 2}) {
    ASSERT_EQ(row.field(missing).size(), 1u);
    EXPECT_EQ(row.field(missing)[0].kind, ObservedKind::none);
  }
  EXPECT_TRUE(row.field(3).empty());
  EXPECT_FALSE(rows.next(row));
}

// What is there begins as what was written, wherever the log is cut.
TEST(Observations, CutAtEveryByte) {
  std::vector<Row> expected;
  const std::string bytes = log_of(2, 60, expected, 13);
  size_t before = 0;
  for (size_t n = 0; n < bytes.size(); ++n) {
    ProcessLog log;
    std::string error;
    ASSERT_TRUE(parse_log(std::string_view(bytes).substr(0, n), log, error)) << error;
    EXPECT_FALSE(log.closed);
    EXPECT_TRUE(log.gaps.empty()) << n;
    ObservationCursor rows(log.observations);
    size_t i = 0;
    for (Observation row; rows.next(row); ++i) {
      EXPECT_LE(row.event, log.events.size());
      expect_row(row, expected[i], kFields[row.schema], "cut");
    }
    EXPECT_EQ(i, log.observations.size());
    EXPECT_GE(i, before);
    before = i;
  }
  EXPECT_EQ(before, 60u);
}

// Nothing is invented; salvage finds the rest and says how many are missing.
TEST(Observations, AFlippedByte) {
  std::vector<Row> expected;
  const std::string bytes = log_of(3, 60, expected, 13);
  uint64_t slots = 0;
  {
    ProcessLog whole;
    std::string error;
    ASSERT_TRUE(parse_log(bytes, whole, error));
    slots = whole.slots.size();
  }
  bool all_missing_told = true;
  for (size_t at = format::kHeaderSize; at < bytes.size(); ++at) {
    std::string damaged = bytes;
    damaged[at] ^= 0x40;
    ProcessLog log;
    std::string error;
    ASSERT_TRUE(parse_log(damaged, log, error)) << error;
    EXPECT_FALSE(log.closed) << at;
    EXPECT_NE(log.damage, "") << at;
    ASSERT_LE(log.observations.size(), expected.size());
    ObservationCursor first(log.observations);
    size_t i = 0;
    for (Observation row; first.next(row); ++i)
      expect_row(row, expected[i], kFields[row.schema], "flipped");
    ASSERT_TRUE(parse_log(damaged, log, error, {.salvage = true}));
    ObservationCursor rest(log.observations);
    i = 0;
    for (Observation row; rest.next(row); ++i) {
      EXPECT_LE(row.event, log.events.size());
      while (i < expected.size() && expected[i].head.time_ns < row.time_ns) ++i;
      ASSERT_LT(i, expected.size());
      ASSERT_EQ(row.time_ns, expected[i].head.time_ns);
      ASSERT_EQ(row.schema, expected[i].head.schema);
      // A schema that was in the damaged part has no fields any more.
      ASSERT_GE(row.values.size(), size_t{expected[i].head.values});
      for (size_t v = 0; v < expected[i].head.values; ++v)
        ASSERT_TRUE(same(row.values[v], expected[i].values[v]));
    }
    uint64_t missing = 0;
    for (const Gap& gap : log.gaps) missing += gap.records;
    const uint64_t held = log.observations.size() + log.slots.size();
    // Without the last chunk nobody knows.
    if (at < bytes.size() - 60) all_missing_told &= held + missing == expected.size() + slots;
  }
  EXPECT_TRUE(all_missing_told);
}

TEST(Observations, WhatIsLostIsARecord) {
  TempDir dir;
  WriterLimits limits;
  limits.queue_bytes = 4000;
  limits.thread = false;
  LogWriter writer(limits);
  ASSERT_TRUE(writer.open(dir.path(), 0, 1, 1, 1));
  const uint32_t schema = schema_of(writer, "thing", 1);
  std::string code;
  put_value(code, observed_bits(7));
  uint64_t kept = 0;
  for (uint32_t i = 0; i < 500; ++i)
    kept += writer.observe({schema, 0, 0, i, 1, static_cast<uint32_t>(code.size())}, code);
  EXPECT_LT(kept, 500u);
  ASSERT_TRUE(writer.close());
  EXPECT_EQ(writer.made(), 500u);
  EXPECT_EQ(writer.lost(), 500 - kept);
  EXPECT_EQ(writer.written(), kept);
  ProcessLog log;
  std::string error;
  ASSERT_TRUE(read_log(writer.path(), log, error)) << error;
  EXPECT_TRUE(log.closed);
  EXPECT_EQ(log.observations.size(), kept);
  EXPECT_EQ(log.gaps, (std::vector<Gap>{{0, 500 - kept}}));
}

std::string log_with(uint32_t count, const std::string& payload,
                     format::Chunk type = format::Chunk::observations) {
  std::string bytes, strings, schemas;
  format::put_header(bytes, 7);
  format::put_chunk(bytes, 7, format::Chunk::process, 1, std::string(4, '\0'));
  format::put_varint(strings, 0);
  format::put_text(strings, "kind");
  format::put_chunk(bytes, 7, format::Chunk::strings, 1, strings);
  schemas += std::string("\0\0\1\0", 4);  // from 0 on: kind 0, one field, 0
  format::put_chunk(bytes, 7, format::Chunk::schemas, 1, schemas);
  format::put_chunk(bytes, 7, type, count, payload);
  return bytes;
}

// First row 0; schema 0, one value, no differences.
const std::string kHead("\0\0\1\0\0\0", 6);

TEST(Observations, WhatContradictsItselfIsRefused) {
  const auto refused = [](uint32_t count, const std::string& payload, const std::string& why) {
    ProcessLog log;
    std::string error;
    ASSERT_TRUE(parse_log(log_with(count, payload), log, error));
    EXPECT_NE(log.damage.find("the chunk of observations is refused: " + why), std::string::npos)
        << log.damage;
    EXPECT_EQ(log.observations.size(), 0u);
  };
  ProcessLog good;
  std::string error;
  ASSERT_TRUE(parse_log(log_with(1, kHead + '\2'), good, error));
  EXPECT_EQ(good.observations.size(), 1u);
  refused(2, kHead + '\2', "its length does not fit its content");
  refused(1, kHead + "\2\2", "its length does not fit its content");
  refused(1, kHead, "its length does not fit its content");
  refused(1, kHead + '\6', "its length does not fit its content");
  refused(1, kHead + static_cast<char>(5 | 1 << 3), "it names a string that is not there");
  refused(1, kHead + static_cast<char>(7 | 9 << 3), "a list is longer than its chunk");
  refused(1, std::string("\0\1\1\0\0\0\2", 7), "it names a schema that is not there");
  refused(1, std::string("\1\0\1\0\0\0\2", 7), "observations before it are missing");
  std::string huge(kHead.substr(0, 2));
  format::put_varint(huge, uint64_t{1} << 40);
  refused(0xffffffff, huge + std::string(3, '\0'), "its length does not fit its content");
}

TEST(Observations, ASchemaThatContradictsItselfIsRefused) {
  const auto refused = [](const std::string& payload, const std::string& why) {
    ProcessLog log;
    std::string error;
    ASSERT_TRUE(parse_log(log_with(1, payload, format::Chunk::schemas), log, error));
    EXPECT_NE(log.damage.find("the chunk of schemas is refused: " + why), std::string::npos)
        << log.damage;
    EXPECT_EQ(log.observations.schemas().size(), 1u);
  };
  refused(std::string("\1\1\0", 3), "it names a string that is not there");
  refused(std::string("\1\0\1\1", 4), "it names a string that is not there");
  refused(std::string("\1\0\2\0", 4), "its length does not fit its content");
  refused(std::string("\2\0\0", 3), "schemas before it are missing");
  refused(std::string("\1\0\x81\2", 4), "a schema of more than 256 fields");
}

}  // namespace
}  // namespace opguard
