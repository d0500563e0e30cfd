// align/pair/provenance_file.h: run.json, which a command leaves beside the logs of a run it made.
#pragma once

#include <string>

#include "llvm/Support/Error.h"
#include "record/provenance.h"

namespace opguard {

inline constexpr int kProvenanceVersion = 1;

// A path of run.json or sites.json as an absolute one. One that is relative leads from the folder
// `dir`, so a run that is kept with its sources can be moved: "../sources/tree/model.py".
std::string path_from(const std::string& dir, const std::string& path);

// Empty where the folder has none: the logs are older, or another program made them. Error, one
// sentence: not such a file.
llvm::Expected<Provenance> read_provenance(const std::string& dir);

// Written beside `<dir>/run.json` and renamed.
llvm::Error write_provenance(const std::string& dir, const Provenance& provenance);

}  // namespace opguard
