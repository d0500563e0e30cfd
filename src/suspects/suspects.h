// suspects/suspects.h: what of the textual difference of two programs may be behind a verdict.
//
// A verdict names the operator where the runs part. Under it stand the hunks that ran before, the
// nearest first, and, where a number differs, the statements it came from. They are read from the
// sources: hints beside what is measured, never in place of it.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "align/judge/verdict.h"
#include "align/pair/alignment.h"
#include "suspects/hunks.h"

namespace opguard {

// What is known of the two programs' texts. Each set holds what its program loaded.
struct ProgramTexts {
  SourceSet sources[2];
  std::vector<TextPair> texts;  // other files that differ
};

// How near a hunk is to a candidate; less is nearer.
enum class Nearness : uint8_t {
  statement,  // its own statement, or one of its region
  origin,     // the value it was given, or that it is, came from there
  function,   // its function; of what no operator made, one that ran right before it
  decides,    // a condition it stands under reads what came from there
  trail,      // A function that called it, made what it read, or gave a name it reads its value.
              // Or a number leads there, by a way far longer than another.
  file,
  earlier,  // ran before it
  unseen,   // no source: not seen to run
};
const char* nearness_name(Nearness nearness);

// A stretch of one side's text.
struct SourceText {
  std::string package, file, path;
  LineSpan lines;                 // empty: this side has nothing there
  std::vector<std::string> text;  // its first lines
  bool operator==(const SourceText&) const = default;
};

// A statement of a hunk on one side. `agrees`: its operators ran before the candidate and left what
// the other run has (agreed.h).
struct HunkStatement {
  LineSpan lines;
  bool agrees = false;
};

struct Suspect {
  Nearness nearness = Nearness::earlier;
  SourceText sides[2];
  bool whole = false;  // a file that only one side loaded
  // By side, in the order of the text; none where the hunk has no statement that agreed.h knows.
  std::vector<HunkStatement> statements[2];
  uint64_t last = 0;  // the last event in it before the candidate, from 1; 0: none of its own

  // Every statement of these lines of both sides does.
  bool agrees(const LineSpan& a, const LineSpan& b) const;
  bool agrees() const { return agrees(sides[0].lines, sides[1].lines); }
};

// The way a number took: the statement that set it, what that was made of, ...
struct NumberWay {
  int side = 0;
  std::vector<SourceText> steps;  // the nearest first
  bool changed = false;           // the last one differs between the programs
};

// A number (a flag, a text) that a candidate was given, unlike in the two runs.
struct Number {
  std::string name;      // "group0.lr", "dim"; "" where the operator itself was made with another
  std::string value[2];  // "" on a side that has none
  std::string given[2];  // the text of the argument that carries it: "alpha=1 - beta"; "" not known
  std::vector<NumberWay> ways;
};

// What stands behind one candidate.
struct Background {
  // The nearest first, behind them those that agree; at most kMostSuspects.
  std::vector<Suspect> suspects;
  uint64_t more = 0;  // suspects left out
  std::vector<Number> numbers;
};

inline constexpr size_t kMostSuspects = 20;

// Of each candidate, in their order; empty where the texts do not differ.
std::vector<Background> find_backgrounds(const ProgramTexts& texts, const Run& a, const Run& b,
                                         const Alignment& alignment, const Verdict& verdict);

}  // namespace opguard
