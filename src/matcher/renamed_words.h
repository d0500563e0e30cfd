// matcher/renamed_words.h: words that were replaced in every name that holds them: LlamaBlock and
// make_llama are AlpacaBlock and make_alpaca now.
//
//   learn("LlamaBlock", "AlpacaBlock")    llama is alpaca: what is between the equal head and tail
//   applied("make_llama")                 "make_alpaca": in the case of what it replaces
//   learn("LlamaMLP", "CamelMLP")         llama is two things now: applied() leaves it
//
// Counterexample: a replacement of text. "collama" holds "llama" and no such word.
//
// The cost: every word of a name is held against everything that was learnt.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace opguard {

class RenamedWords {
 public:
  // A name and what it is now. Learns the words in which they differ, if that is one place only.
  void learn(std::string_view was, std::string_view is);
  // The name as it reads with all that was learnt; itself if nothing of it was.
  std::string applied(std::string_view name) const;
  bool empty() const { return words_.empty(); }

 private:
  // Lower case; "": replaced by one thing here and another there.
  std::map<std::vector<std::string>, std::string> words_;
  std::map<std::string, std::string, std::less<>> as_written_;  // "CTC" -> "Quasar"
};

}  // namespace opguard
