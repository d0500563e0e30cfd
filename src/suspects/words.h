// suspects/words.h: the names in a stretch of source text.
#pragma once

#include <functional>
#include <set>
#include <string>
#include <string_view>

namespace opguard {

using Words = std::set<std::string, std::less<>>;

bool is_word(char c);

// Of code and strings; a comment names what it likes.
Words words_of(std::string_view text);

// Names that the text gives a value: `def f`, `class C`, `x =`, `x: int =`.
Words made_in(const std::string& text);

}  // namespace opguard
