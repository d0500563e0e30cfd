// suspects/exchange_parts.h: the lines in which two programs differ, cut as small as they can be
// exchanged.
//
//   a  x = x.view(-1, 1)                    b  x = x.view(1, -1)               a part
//      return full((x.size()[0], n))           y = full((x.size()[0], n))      another:
//                                              return y                        one line for two
//
// Counterexample: one call over three lines, of which the second differs. It is no statement alone,
// so the cut is around all three where they are changed.
//
// The cost of a change: the statements of one side times those of the other.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "suspects/code.h"
#include "suspects/suspects.h"

namespace opguard {

// Lines of a file of a and of b that stand for one another. A side without any stands before its
// `first`.
struct ExchangePart {
  const SourceFile* file[2] = {nullptr, nullptr};
  uint32_t first[2] = {0, 0}, count[2] = {0, 0};
  bool suspect = false;   // of one that ran
  double likelihood = 0;  // of that, beside other parts of its group
  // a's text in b's names, where its function calls its variables otherwise (renames.h).
  std::optional<std::string> given = {};
  std::set<std::string, std::less<>> renamed = {};  // these names of a's and of b's
};

// Every change of the files that have suspects, and of those that both programs call by one name.
std::vector<ExchangePart> exchange_parts(const ProgramTexts& texts,
                                         const std::vector<Suspect>& suspects);

// One side's text of a part; a's in b's names.
std::string text_of(const ExchangePart& part, int side);
// One side's lines of a part; empty where it has none.
LineSpan span_of(const ExchangePart& part, int side);
// `count` lines from `first` on, counted from 1, with their ends.
std::string lines_of(const SourceFile& file, uint32_t first, uint32_t count);

}  // namespace opguard
