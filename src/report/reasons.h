// report/reasons.h: the sentences of a verdict: Reasons (align/judge/reason.h) in words.
//
//   {saves, numbers {3, 2}}                        "run a saves 3 times, run b 2"
//   {only_one_run, side 1}                         "only run b has this operator, ..."
//
// This is the only place where they are worded. Counterexample: no analysis asks for a text, such
// as `why.find("not whole")`; it asks for a kind. Nothing is escaped: a name may hold what drives a
// terminal, and is shown() by who prints it.
#pragma once

#include <string>
#include <vector>

#include "align/judge/reason.h"
#include "align/pair/settings.h"
#include "record/record.h"

namespace opguard {

// One sentence, "" of no reasons. a, b: the runs they speak of; of findings in one run it is both.
std::string words(const Run& a, const Run& b, const Reasons& reasons);
std::string words(const Run& a, const Run& b, const Reason& reason);

// One sentence each.
std::vector<std::string> words(const Run& a, const Run& b, const std::vector<Reasons>& notes);

// "torch differs: 2.12.0 in a, 2.13.0 in b"
std::string words(const SettingDifference& setting);
std::vector<std::string> words(const std::vector<SettingDifference>& settings);

}  // namespace opguard
