// suspects/words.h: the names in a stretch of source text.
//
//   words_of("lr = base_lr * 0.1  # half")    base_lr, lr
//   made_in("lr = f(x)\ndef g(y):")           g, lr
//
// Read letter by letter, without a tree. So it works on any lines, half a statement too.
// Counterexample: keywords and the words in a string are names here as well. Who asks looks them up
// among names that he knows.
//
// The cost: once over the text.
#pragma once

#include <functional>
#include <set>
#include <string>
#include <string_view>

namespace opguard {

using Words = std::set<std::string, std::less<>>;

// A letter, a digit, `_`, or any byte of a letter beyond ASCII.
bool is_word(char c);

// Of code and strings; a comment names what it likes.
Words words_of(std::string_view text);

// Names that the text gives a value: `def f`, `class C`, `x =`, `x: int =`.
Words made_in(const std::string& text);

}  // namespace opguard
