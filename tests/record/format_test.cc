#include "record/format.h"
#include "record/byte_writer.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace opguard::format {
namespace {

// Numbers of every length, read where the payload goes on and where it ends.
TEST(Cursor, NumbersOfEveryLength) {
  for (int bits = 0; bits < 64; ++bits)
    for (uint64_t below : {0, 1}) {
      const uint64_t number = (uint64_t{1} << bits) - below;
      for (size_t behind : {0, 1, 7, 8, 20})
        for (char next : {'\0', '\x7f', '\x80', '\xff'}) {
          std::string bytes;
          put_varint(bytes, number);
          const size_t length = bytes.size();
          bytes.append(behind, next);
          Cursor in(bytes);
          EXPECT_EQ(in.varint(), number);
          EXPECT_TRUE(in.ok());
          EXPECT_EQ(in.left(), bytes.size() - length);
          for (size_t cut = 0; cut < length; ++cut) {
            Cursor part(std::string_view(bytes).substr(0, cut));
            EXPECT_EQ(part.varint(), 0u);
            EXPECT_FALSE(part.ok());
          }
        }
    }
}

// The bytes are those of put_varint, whatever lay there before.
TEST(ByteWriter, NumbersOfEveryLength) {
  for (int bits = 0; bits < 64; ++bits)
    for (uint64_t below : {0, 1})
      for (uint64_t more : {uint64_t{0}, uint64_t{0x123456789abcdef}}) {
        const uint64_t number = (uint64_t{1} << bits) - below + more % (uint64_t{1} << bits);
        std::string expected;
        put_varint(expected, number);
        put_signed(expected, static_cast<int64_t>(number));
        put_signed(expected, -static_cast<int64_t>(number));
        put_u64(expected, number);
        char bytes[64];
        std::fill_n(bytes, sizeof bytes, '\xa5');
        ByteWriter out(bytes);
        out.varint(number);
        out.signed_varint(static_cast<int64_t>(number));
        out.signed_varint(-static_cast<int64_t>(number));
        out.u64(number);
        EXPECT_EQ(std::string(bytes, out.at()), expected);
      }
}

TEST(Cursor, ANumberThatDoesNotFitIsRefused) {
  for (const char* bytes : {"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02",
                            "\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01"}) {
    Cursor in(bytes);
    EXPECT_EQ(in.varint(), 0u);
    EXPECT_FALSE(in.ok());
  }
  std::string most;
  put_varint(most, UINT64_MAX);
  EXPECT_EQ(Cursor(most).varint(), UINT64_MAX);
  // 2^32, where 32 bits are asked for.
  Cursor in("\x80\x80\x80\x80\x10 and more bytes");
  EXPECT_EQ(in.varint32(), 0u);
  EXPECT_FALSE(in.ok());
}

}  // namespace
}  // namespace opguard::format
