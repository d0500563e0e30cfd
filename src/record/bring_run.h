// record/bring_run.h: what is read of many logs that lie elsewhere, brought in a few questions.
//
//   1  of each log its header, of its index the end
//   2  of each index where the log holds what is no event
//   3  of each log what is read of it
//
// read_log() asks for the same, log by log, and finds all of it here.
// Counterexample: logs of one another's damaged index. What was not foreseen read_log() brings.
// For src/record alone; others give ReadFrom::bring (record.h).
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "record/record.h"

namespace opguard {

// "" or why not all of it is there. logs: by path, with a `bring` that is the same for all.
std::string bring_logs(const std::vector<std::pair<std::string, ReadOptions>>& logs,
                       const Bring& bring);

}  // namespace opguard
