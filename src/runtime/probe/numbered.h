// runtime/probe/numbered.h: names of arguments and results by their place.
#pragma once

#include <cstring>
#include <string>
#include <string_view>

namespace opguard {

// "arg3". kind: of three letters.
class Numbered {
 public:
  Numbered(const char* kind, size_t number) {
    if (number > 9) long_ = kind + std::to_string(number);
    const char text[4] = {kind[0], kind[1], kind[2], static_cast<char>('0' + number % 10)};
    std::memcpy(short_, text, sizeof text);
  }
  operator std::string_view() const {
    return long_.empty() ? std::string_view(short_, sizeof short_) : long_;
  }

 private:
  char short_[4];
  std::string long_;
};

}  // namespace opguard
