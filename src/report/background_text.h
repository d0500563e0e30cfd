// report/background_text.h: what may stand behind a candidate, in words: suspects, and where a
// number came from. They are read from the sources, and said to be.
//
//   train.py:13: its statement
//   a model.py:40-42, b model.py:40: in its function; what it computed is equal in both runs
//   b extra.py:1-40, a file of b alone: ran before it
//
// Counterexample: "the cause is train.py:13". Nothing was measured here: a suspect is where to
// look.
#pragma once

#include <string>
#include <vector>

#include "report/report.h"

namespace opguard {

// Of one candidate; nullptr where nothing is known of it.
const Background* background_of(const Report& report, size_t candidate);

// "train.py:20-31"; "" for a side that has nothing there.
std::string place_text(const SourceText& text);

// "train.py:13", "a train.py:13-15, b train.py:13", "b new.py:7, only there".
std::string place_text(const Suspect& suspect);

// "in its function; what it computed is equal in both runs".
std::string suspect_text(const Suspect& suspect);

// "where group0.lr can come from: 0.0002 in a, 0.0 in b".
std::string number_title(const Number& number);

// The first lines of a stretch, each cut to `columns` and shown safely.
std::vector<std::string> shown_lines(const SourceText& text, size_t most, uint32_t columns);

}  // namespace opguard
