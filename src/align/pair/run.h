// align/pair/run.h: a folder of logs as a Run, with the exact places of its boundaries.
//
// The runtime knows file and line of a boundary. The tool that put the probes in knows the whole
// expression and leaves it beside the logs, in sites.json: docs/formats/json.md, section
// "sites.json".
#pragma once

#include <map>
#include <string>

#include "llvm/Support/Error.h"
#include "record/record.h"

namespace opguard {

inline constexpr int kSitesVersion = 1;

// Error, one sentence: no folder, no log in it, not a log, another version, a damaged sites.json.
llvm::Expected<Run> load_run(const std::string& dir, const ReadFrom& read = {});

// By boundary id. Written beside `<dir>/sites.json` and renamed.
llvm::Error write_sites(const std::string& dir, const std::map<std::string, Location>& sites,
                        const Calls& calls = {});

}  // namespace opguard
