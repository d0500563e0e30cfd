// record/format.h: the bytes of a log that its writer and its reader share: docs/record-format.md.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

namespace opguard::format {

inline constexpr char kMagic[8] = {'o', 'p', 'g', 'u', 'a', 'r', 'd', '\x1a'};
inline constexpr uint32_t kVersion = 3;
inline constexpr size_t kHeaderSize = 16;  // magic, version, crc of both
inline constexpr size_t kChunkHeaderSize = 16;
// A slot's first number: kind + kFlatFollows + kFlagStep * flags.
inline constexpr uint64_t kFlatFollows = 4;  // its flat hash is not its h
inline constexpr uint64_t kFlagStep = 8;

enum class Chunk : uint32_t {
  process = 1,
  settings = 2,
  strings = 3,
  metas = 4,
  locations = 5,
  events = 6,
  lost = 7,
  end = 8,
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

// A chunk as it lies in the file.
void put_chunk(std::string& out, Chunk type, uint32_t count, std::string_view payload);

// Takes values from the front of a payload. After a failure `ok` stays false and all values are 0:
// callers check once at the end of what they decode.
class Cursor {
 public:
  explicit Cursor(std::string_view bytes) : bytes_(bytes) {}

  bool ok() const { return ok_; }
  size_t left() const { return bytes_.size(); }

  uint8_t byte() {
    if (bytes_.empty()) return fail();
    uint8_t b = static_cast<uint8_t>(bytes_[0]);
    bytes_.remove_prefix(1);
    return b;
  }
  uint64_t u64() {
    if (bytes_.size() < 8) return fail();
    uint64_t v = 0;
    for (int i = 0; i < 8; ++i) v |= uint64_t{static_cast<uint8_t>(bytes_[i])} << (8 * i);
    bytes_.remove_prefix(8);
    return v;
  }
  uint64_t varint() {
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
  std::string text() {
    uint64_t n = varint();
    if (n > bytes_.size()) {
      fail();
      return {};
    }
    std::string s(bytes_.substr(0, n));
    bytes_.remove_prefix(n);
    return s;
  }
  uint8_t fail() {
    ok_ = false;
    bytes_ = {};
    return 0;
  }

 private:
  std::string_view bytes_;
  bool ok_ = true;
};

}  // namespace opguard::format
