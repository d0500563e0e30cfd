// report/notes_text.h: what a reader of a verdict should know beside it, a sentence each.
#pragma once

#include <string>
#include <vector>

#include "report/report.h"

namespace opguard {

// What each rule hid, found equal, or did not find, and why it is there.
std::vector<std::string> rule_sentences(const Report& report);

// What the logs themselves leave open: cut short, damaged, records lost.
std::vector<std::string> log_notes(const Run& a, const Run& b);
std::vector<std::string> log_notes(const Run& run);
// Over all processes; of JSON. 0: nothing was lost.
uint64_t lost_records(const Run& run);

}  // namespace opguard
