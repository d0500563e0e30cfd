// suspects/trail.h: from an expression back to the statements its value comes from.
//
//   scaler.step(optimizer)                 group0.lr is 0.0 here and 0.0002 in the other run
//     <- group["lr"] = lr                  train.py:41
//     <- lr = get_lr(it)                   train.py:38
//     <- def get_lr(it): ...               train.py:20-31, where the two programs differ
//
// The names in an expression lead to the statements that give them a value, and so on, nearest
// first, until one stands in a hunk. This is read from the sources: it says where the value can
// have come from, and of several ways it takes the shortest. Cost: linear in the statements met, of
// which there are at most kMostDefinitions.
#pragma once

#include <array>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "suspects/definitions.h"
#include "suspects/hunks.h"
#include "suspects/ran.h"

namespace opguard {

// A statement on the way.
struct TrailStep {
  uint32_t file = 0;
  LineSpan lines;
  std::string text;  // its first line
  bool operator==(const TrailStep&) const = default;
};

// A way that ends in a hunk, or, where none does, at a statement that gave the value.
struct Trail {
  std::vector<TrailStep> steps;  // the nearest first
  std::optional<uint32_t> hunk;  // index of it
  std::optional<uint32_t> text;  // or of a TextPair that names what is looked for ...
  uint32_t line = 0;             // ... in this line
};

struct TrailQuestion {
  const Code& code;
  const Definitions& definitions;
  const Ran& ran;
  // Of the run that is asked: 0 is a. `hunks` and `pairs` have both sides' lines.
  int side = 0;
  const std::vector<FilePair>& pairs;
  const std::vector<Hunk>& hunks;  // those that ran
  const std::vector<TextPair>& texts;
};

struct TrailFound {
  std::vector<Trail> changed;                         // nearest first, a hunk or text once
  std::vector<Trail> setters;                         // what the names lead to at once
  std::vector<std::pair<uint32_t, uint32_t>> scopes;  // file and scope of what was met nearby
};

// depth: how many statements a way may have.
TrailFound follow_trail(const TrailQuestion& question, const std::vector<NameUse>& from,
                        size_t depth);

}  // namespace opguard
