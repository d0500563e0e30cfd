// session/dump_files.h: any file the tool leaves behind, as text.
//
//   opguard dump run_a                    every log of a folder: events and their records
//   opguard dump run_a/rank0-....log      one of them, also where it is damaged (--salvage)
//   opguard dump plan.json                a plan; so a folder of traces
//   opguard dump s3://bucket/run_a        brought here first
//
// Counterexample: one trace of a folder of traces. It says nothing without the others of its run,
// and is refused.
//
// The cost: a whole log is held in memory.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "record/dump.h"

namespace opguard {

struct DumpOptions {
  std::string path, other;         // a folder of logs may be a URL
  std::string python = "python3";  // then: an interpreter that has pyarrow
  bool salvage = false;
  EventSelection selection;
  // As they were given; what they say is in `selection` and `limit`.
  std::string steps, limit_text;
  std::vector<std::string> phases;
  uint64_t limit = std::numeric_limits<uint64_t>::max();
  std::string format = "text";
  bool events = false;
  bool for_logs_only() const {
    return !selection.all() || format != "text" || events ||
           limit != std::numeric_limits<uint64_t>::max();
  }
};

// The exit code (support/exit_code.h).
int dump_path(const DumpOptions& options);
// How the events of two folders of logs are paired, `path` and `other`.
int dump_alignment(const DumpOptions& options);

}  // namespace opguard
