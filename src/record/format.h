// record/format.h: the bytes of a log that its writer and its reader share:
// docs/formats/record-format.md.
//
//   file      header | chunk | chunk | ... | end             no end: the process was killed
//   chunk     "opg" | type | length | count | crc | payload crc | payload
//
// A chunk needs only those before it that define strings and metas. An event is coded against the
// one before it, a slot against the tensors of its chunk. A tensor that is read again takes a few
// bytes.
//
// Counterexample: a checksum of the payload alone would accept what an earlier log left on the
// disk. So each checksum begins with the file's salt, and the end binds all chunks, in their order.
//
// The cost: 18 to 21 bytes a record. Numbers are varints: 7 bits a byte, small ones first.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

namespace opguard::format {

inline constexpr char kMagic[8] = {'o', 'p', 'g', 'u', 'a', 'r', 'd', '\x1a'};
inline constexpr uint32_t kVersion = 12;
// A log in one file; 12 is cut into segments (segments.h).
inline constexpr uint32_t kOneFileVersion = 11;
// The oldest that is read. 10 has no observations. 9 does not tell who called an operator. 8 has no
// sketches. The end of 7 does not bind the chunks before it, 6 does not tell what wants a gradient
// either. 5 has no digests, 4 no devices' times.
inline constexpr uint32_t kOldestVersion = 4;
inline constexpr uint32_t kBindingVersion = 8;
inline constexpr uint32_t kCallsVersion = 10;
inline constexpr uint32_t kObservationsVersion = 11;
inline constexpr uint32_t kSegmentsVersion = 12;
inline constexpr size_t kHeaderSize = 20;  // magic, version, salt, crc of the three
inline constexpr size_t kChunkHeaderSize = 20;
inline constexpr char kMark[3] = {'o', 'p', 'g'};  // a chunk begins with it: found again by it
// What a reader allocates for one chunk is bounded by this; writers stay far below.
inline constexpr size_t kMaxPayload = size_t{1} << 26;

// Which fields of an event follow: the others are those of the event before it, or none.
enum EventField : uint8_t {
  kKinds = 1,  // kind, phase, flags
  kSteps = 2,  // step, micro-batch
  kThread = 4,
  kInside = 8,  // begin
  kForward = 16,
  kNode = 32,
  kScalars = 64,
  kResults = 128,
};

// A slot's first number: kind + 4 * form + kIndexFollows + kFlagStep * flags.
enum class Form : uint8_t {
  row = 0,     // place and value; the tensor is one row, so that h says all of the value
  full = 1,    // place and value
  tensor = 2,  // a tensor of this chunk again: place and value are its
  value = 3,   // place; the value is that of a tensor of this chunk
};
inline constexpr uint64_t kIndexFollows = 16;  // it is not the next of its kind in the event
inline constexpr uint64_t kFlagStep = 32;
// Beside the flags of a slot of form row or full: its digest follows.
inline constexpr uint16_t kDigestFollows = 128;
inline constexpr uint16_t kMostFlags = 0x1ff;

// og1's m of a tensor of one row whose hash is `row`.
inline uint64_t mix(uint64_t row) {
  row ^= row >> 29;
  row *= 0xd6e8feb86659fd93u;
  return row ^ row >> 32;
}

enum class Chunk : uint32_t {
  process = 1,
  settings = 2,
  strings = 3,
  metas = 4,
  locations = 5,
  events = 6,
  lost = 7,
  end = 8,
  sketches = 9,
  observations = 10,
  schemas = 11,
  segments = 12,
  removed = 13,
};

const char* chunk_name(Chunk type);

inline void put_u32(std::string& out, uint32_t v) {
  for (int i = 0; i < 4; ++i) out.push_back(static_cast<char>(v >> (8 * i)));
}

inline void put_u64(std::string& out, uint64_t v) {
  for (int i = 0; i < 8; ++i) out.push_back(static_cast<char>(v >> (8 * i)));
}

inline void put_varint(std::string& out, uint64_t v) {
  for (; v >= 0x80; v >>= 7) out.push_back(static_cast<char>(v | 0x80));
  out.push_back(static_cast<char>(v));
}

// Small magnitudes of either sign become small numbers.
inline uint64_t zigzag(int64_t v) {
  return (static_cast<uint64_t>(v) << 1) ^ static_cast<uint64_t>(v >> 63);
}

inline int64_t unzigzag(uint64_t v) { return static_cast<int64_t>((v >> 1) ^ (~(v & 1) + 1)); }

inline void put_signed(std::string& out, int64_t v) { put_varint(out, zigzag(v)); }

inline void put_text(std::string& out, std::string_view s) {
  put_varint(out, s.size());
  out.append(s);
}

// The first bytes of a file.
void put_header(std::string& out, uint32_t salt, uint32_t version = kOneFileVersion);
// A chunk as it lies in the file. Its checksums begin with the file's salt: what another log left
// on the disk is not taken for this one's.
void put_chunk(std::string& out, uint32_t salt, Chunk type, uint32_t count,
               std::string_view payload);

inline uint32_t load_u32(const char* p) {
  const auto* b = reinterpret_cast<const uint8_t*>(p);
  return b[0] | b[1] << 8 | b[2] << 16 | uint32_t{b[3]} << 24;
}

inline uint64_t load_u64(const char* p) { return load_u32(p) | uint64_t{load_u32(p + 4)} << 32; }

// Takes values from the front of a payload. After a failure `ok` stays false and all values are 0:
// callers check once at the end of what they decode.
class Cursor {
 public:
  explicit Cursor(std::string_view bytes) : at_(bytes.data()), end_(at_ + bytes.size()) {}

  bool ok() const { return ok_; }
  size_t left() const { return static_cast<size_t>(end_ - at_); }

  uint8_t byte() {
    if (at_ == end_) return fail();
    return static_cast<uint8_t>(*at_++);
  }
  uint64_t u64() {
    if (left() < 8) return fail();
    uint64_t v = load_u64(at_);
    at_ += 8;
    return v;
  }
  uint64_t varint() {
    if (at_ != end_ && !(*at_ & 0x80)) return static_cast<uint8_t>(*at_++);  // the usual case
    // Up to 8 bytes at once: where a number ends is not to be guessed, branch by branch.
    if (left() >= 8) {
      uint64_t v = load_u64(at_);
      if (const uint64_t ends = ~v & 0x8080808080808080u; ends != 0) {
        at_ += (std::countr_zero(ends) >> 3) + 1;
        v &= (ends ^ (ends - 1)) & 0x7f7f7f7f7f7f7f7fu;
        v = (v & 0x007f007f007f007fu) | (v & 0x7f007f007f007f00u) >> 1;
        v = (v & 0x00003fff00003fffu) | (v & 0x3fff00003fff0000u) >> 2;
        return (v & 0x000000000fffffffu) | (v & 0x0fffffff00000000u) >> 4;
      }
    }
    uint64_t v = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      uint8_t b = byte();
      if (shift == 63 && b > 1) return fail();  // would not fit in 64 bits
      v |= uint64_t{b & 0x7fu} << shift;
      if (b < 0x80) return ok_ ? v : 0;
    }
    return fail();
  }
  uint32_t varint32() {
    uint64_t v = varint();
    return v <= 0xffffffffu ? static_cast<uint32_t>(v) : static_cast<uint32_t>(fail());
  }
  int64_t signed_varint() { return unzigzag(varint()); }
  // So many bytes as they lie, stepped over; nullptr: there are not so many.
  const char* bytes(size_t n) {
    if (n > left()) {
      fail();
      return nullptr;
    }
    at_ += n;
    return at_ - n;
  }
  std::string text() {
    uint64_t n = varint();
    if (n > left()) {
      fail();
      return {};
    }
    std::string s(at_, n);
    at_ += n;
    return s;
  }
  uint8_t fail() {
    ok_ = false;
    at_ = end_;
    return 0;
  }

 private:
  const char* at_;
  const char* end_;
  bool ok_ = true;
};

}  // namespace opguard::format
