// record/byte_writer.h: numbers as format.h puts them, into memory that has room for them.
//
//   ByteWriter out(at);       room for all that follows was made once
//   out.varint(300);          0xac 0x02, as put_varint(); 8 bytes are touched
//   out.at()                  2 bytes behind `at`
//
// Counterexample: a string asks at every byte whether it has room for one more.
//
// The cost: a number of two bytes or more takes the same steps as one of eight; none is guessed.
#pragma once

#include <bit>
#include <cstdint>

#include "record/format.h"

namespace opguard {

class ByteWriter {
 public:
  explicit ByteWriter(char* at) : at_(at) {}
  char* at() const { return at_; }

  void byte(uint8_t v) { *at_++ = static_cast<char>(v); }
  void u64(uint64_t v) {
    store(v);
    at_ += 8;
  }
  // Writes into the 8 bytes behind it, where it is shorter.
  void varint(uint64_t v) {
    if (v < 0x80) return byte(static_cast<uint8_t>(v));  // the usual case
    for (; v >> 56 != 0; v >>= 7) byte(static_cast<uint8_t>(v | 0x80));
    // Groups of 7 bits to one byte each, all at once: how many there are is not to be guessed.
    const int bytes = (std::bit_width(v | 1) + 6) / 7;
    v = (v & 0x000000000fffffffu) | (v & 0x00fffffff0000000u) << 4;
    v = (v & 0x00003fff00003fffu) | (v & 0x0fffc0000fffc000u) << 2;
    v = (v & 0x007f007f007f007fu) | (v & 0x3f803f803f803f80u) << 1;
    const uint64_t before_last = (uint64_t{1} << 8 * (bytes - 1)) - 1;
    store(v | (0x8080808080808080u & before_last));
    at_ += bytes;
  }
  void signed_varint(int64_t v) { varint(format::zigzag(v)); }

 private:
  void store(uint64_t v) {
    for (int i = 0; i < 8; ++i) at_[i] = static_cast<char>(v >> 8 * i);
  }

  char* at_;
};

}  // namespace opguard
