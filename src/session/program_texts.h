// session/program_texts.h: the texts of both programs, for what may stand behind a verdict.
//
//   sources   what each program has loaded, as its survey has them
//   texts     other files of the tree that they opened, config.yaml, and that differ
//
// Two folders of logs know less: the files of their sites, as they are on disk. Counterexample: a
// file that was edited since. It no longer holds each recorded expression in its place, and is no
// text of that run.
//
// The cost: all these texts in memory, as long as the verdict is examined.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "session/report_verdict.h"
#include "support/source.h"

namespace opguard {

// What a side of `diff` loaded and read.
struct SideTexts {
  std::string tree;
  SourceSet sources;
  std::vector<std::string> read;  // absolute paths of other files of the tree that it opened
};

// As the preflight noted them in its folder (python/opguard/trace/opened.py), each once.
std::vector<std::string> read_files(const std::string& traces);

std::shared_ptr<const ProgramTexts> texts_of(SideTexts a, SideTexts b);
FindBackgrounds backgrounds_of(std::shared_ptr<const ProgramTexts> texts);

// Of two folders of logs: the files their sites are in, as far as they still hold what ran: every
// recorded expression in its place. A log without expressions (no sites.json) knows none.
FindBackgrounds backgrounds_of_logs();

}  // namespace opguard
