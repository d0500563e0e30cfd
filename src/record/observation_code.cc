// Bytes of a value:
//
//   none, no, yes    1
//   3                1    its zigzag 6 lies beside the kind
//   -20              2    39 is above 30: it follows
//   0.5              5    a float holds it
//   0.1              9
//   [1, 2]           3    the list, then its elements
//
// What is read is checked as a chunk is added, all of it. So a cursor meets no fault later.
#include "record/observation_code.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "record/format.h"

namespace opguard {
namespace {

using format::Cursor;
using format::put_signed;
using format::put_varint;

// Of a value's first byte: the kind, then a number that is below kFollows, or follows.
constexpr unsigned kKindBits = 3;
constexpr uint8_t kKindMask = (1u << kKindBits) - 1, kFollows = 31;
// Of a real number: a float that is equal to it follows.
constexpr uint8_t kSingle = 1;

constexpr const char* kWrongLength = "its length does not fit its content";

void put_small(std::string& out, ObservedKind kind, uint64_t number) {
  const uint64_t small = std::min<uint64_t>(number, kFollows);
  out.push_back(static_cast<char>(static_cast<uint64_t>(kind) | small << kKindBits));
  if (small == kFollows) put_varint(out, number);
}

uint64_t take_small(Cursor& in, uint8_t head) {
  const uint8_t small = head >> kKindBits;
  return small == kFollows ? in.varint() : small;
}

double take_real(Cursor& in, uint8_t head) {
  if (head >> kKindBits != kSingle) return std::bit_cast<double>(in.u64());
  const char* at = in.bytes(4);
  return at == nullptr ? 0 : static_cast<double>(std::bit_cast<float>(format::load_u32(at)));
}

// One value and, of a list, all that is below it. "" or what is wrong.
std::string take_value(Cursor& in, uint64_t strings, std::vector<ObservedValue>& values) {
  for (uint64_t wanted = 1; wanted > 0 && in.ok(); --wanted) {
    const uint8_t head = in.byte();
    ObservedValue& value = values.emplace_back();
    value.kind = static_cast<ObservedKind>(head & kKindMask);
    switch (value.kind) {
      case ObservedKind::none:
      case ObservedKind::no:
      case ObservedKind::yes:
        break;
      case ObservedKind::integer:
        value.integer = format::unzigzag(take_small(in, head));
        break;
      case ObservedKind::real:
        value.real = take_real(in, head);
        break;
      case ObservedKind::bits:
        value.bits = in.u64();
        break;
      case ObservedKind::text:
        value.text = static_cast<uint32_t>(std::min<uint64_t>(take_small(in, head), kNone));
        if (value.text >= strings) return "it names a string that is not there";
        break;
      case ObservedKind::list: {
        const uint64_t elements = take_small(in, head);
        if (elements > in.left()) return "a list is longer than its chunk";
        value.text = static_cast<uint32_t>(elements);
        wanted += elements;
        break;
      }
    }
  }
  return in.ok() ? "" : kWrongLength;
}

}  // namespace

void put_value(std::string& out, const ObservedValue& value) {
  switch (value.kind) {
    case ObservedKind::none:
    case ObservedKind::no:
    case ObservedKind::yes:
      out.push_back(static_cast<char>(value.kind));
      break;
    case ObservedKind::integer:
      put_small(out, value.kind, format::zigzag(value.integer));
      break;
    case ObservedKind::text:
    case ObservedKind::list:
      put_small(out, value.kind, value.text);
      break;
    case ObservedKind::bits:
      out.push_back(static_cast<char>(value.kind));
      format::put_u64(out, value.bits);
      break;
    case ObservedKind::real: {
      const auto single = static_cast<float>(value.real);
      if (std::bit_cast<uint64_t>(static_cast<double>(single)) == value.bits) {
        out.push_back(static_cast<char>(static_cast<uint8_t>(value.kind) | kSingle << kKindBits));
        format::put_u32(out, std::bit_cast<uint32_t>(single));
      } else {
        out.push_back(static_cast<char>(value.kind));
        format::put_u64(out, value.bits);
      }
      break;
    }
  }
}

void ObservationEncoder::add(const ObservedHead& head, std::string_view values) {
  put_varint(bytes_, head.schema);
  put_varint(bytes_, head.values);
  put_signed(bytes_, static_cast<int64_t>(head.step) - static_cast<int64_t>(before_.step));
  put_signed(bytes_, static_cast<int64_t>(head.event - before_.event));
  put_signed(bytes_, static_cast<int64_t>(static_cast<uint64_t>(head.time_ns) -
                                          static_cast<uint64_t>(before_.time_ns)));
  bytes_ += values;
  before_ = head;
  ++rows_;
}

void ObservationEncoder::clear() {
  bytes_.clear();
  rows_ = 0;
  before_ = {};
}

void ObservationDecoder::begin(std::string_view payload, uint32_t count, uint64_t strings) {
  rest_ = payload;
  left_ = count;
  strings_ = strings;
  step_ = 0;
  event_ = 0;
  time_ns_ = 0;
  fault_.clear();
}

// Fields that a row was not given are none.
bool ObservationDecoder::next(Observation& row, const std::vector<ObservationSchema>& schemas) {
  if (left_ == 0 || !fault_.empty()) return false;
  Cursor in(rest_);
  row.schema = in.varint32();
  const uint64_t values = in.varint();
  step_ += static_cast<uint32_t>(in.signed_varint());
  event_ += static_cast<uint64_t>(in.signed_varint());
  time_ns_ = static_cast<int64_t>(static_cast<uint64_t>(time_ns_) +
                                  static_cast<uint64_t>(in.signed_varint()));
  if (!in.ok())
    fault_ = kWrongLength;
  else if (row.schema >= schemas.size())
    fault_ = "it names a schema that is not there";
  if (!fault_.empty()) return false;
  values_.clear();
  starts_.clear();
  for (uint64_t i = 0; i < values; ++i) {
    starts_.push_back(static_cast<uint32_t>(values_.size()));
    fault_ = take_value(in, strings_, values_);
    if (!fault_.empty()) return false;
  }
  for (size_t n = schemas[row.schema].fields.size(); starts_.size() < n;) {
    starts_.push_back(static_cast<uint32_t>(values_.size()));
    values_.emplace_back();
  }
  rest_.remove_prefix(rest_.size() - in.left());
  row.step = step_;
  row.event = event_;
  row.time_ns = time_ns_;
  row.values = values_;
  row.starts = starts_;
  --left_;
  return true;
}

std::string ObservationDecoder::fault() const {
  if (!fault_.empty()) return fault_;
  return left_ == 0 && rest_.empty() ? "" : kWrongLength;
}

std::string ObservationTable::add(std::string_view payload, uint32_t count, uint64_t strings) {
  decoder_.begin(payload, count, strings);
  for (Observation row; decoder_.next(row, schemas_);) continue;
  if (std::string wrong = decoder_.fault(); !wrong.empty()) return wrong;
  if (!file_) {
    held_.push_back(std::make_shared<const std::string>(payload));
    payload = *held_.back();
  }
  parts_.push_back({payload, count});
  rows_ += count;
  strings_ = strings;
  return "";
}

// Indexes of events that the log does not hold, since it was cut or damaged, become the next one's.
uint64_t ObservationTable::place(uint64_t event) const {
  if (stretches_.empty()) return std::min(event, events_);
  size_t i = stretches_.size();
  while (i > 0 && event < stretches_[i - 1].first) --i;
  const uint64_t end = i < stretches_.size() ? stretches_[i].at : events_;
  if (i == 0) return std::min(event, end);
  return std::min(stretches_[i - 1].at + (event - stretches_[i - 1].first), end);
}

bool ObservationCursor::next(Observation& row) {
  while (!decoder_.next(row, table_.schemas_)) {
    if (part_ > 0 && table_.file_ != nullptr)
      table_.file_->give_back(table_.parts_[part_ - 1].payload);
    if (part_ == table_.parts_.size()) return false;
    const ObservationTable::Part& part = table_.parts_[part_++];
    decoder_.begin(part.payload, part.count, table_.strings_);
  }
  row.event = table_.place(row.event);
  return true;
}

}  // namespace opguard
