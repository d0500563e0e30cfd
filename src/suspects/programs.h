// suspects/programs.h: the two programs of a verdict as every candidate sees them, and stretches of
// their texts.
//
// Index 0 is program a, 1 is program b, everywhere. All is held by find_backgrounds() and refers to
// it: nothing is copied for a candidate. Counterexample: what depends on the candidate (what ran
// before it) is Stand's and Ran's.
#pragma once

#include "suspects/definitions.h"
#include "suspects/hunks.h"
#include "suspects/suspects.h"

namespace opguard {

struct Programs {
  const ProgramTexts& texts;
  const Run* runs[2];
  const Code* code[2];
  const Definitions* definitions[2];
  const std::vector<FilePair>& pairs;
  // All of them, whether they ran or not.
  const std::vector<Hunk>& hunks;
};

// A side's stretch of a hunk, with its first lines.
SourceText text_of(const Programs& programs, const Hunk& hunk, int side);
// A stretch of a settings file. count 0: this side has nothing there.
SourceText text_of(const TextPair& pair, int side, uint32_t first, uint32_t count);

}  // namespace opguard
