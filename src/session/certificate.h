// session/certificate.h: what a certified check depended on, kept so that nothing unchanged runs
// twice.
//
//   .opguard/certificates/5c0d....json     by the key: check, commands, environment, opguard
//     "files": [["model.py", "91aa..."]]   sources that ran, and files of the tree that were read
//     "modules": "f3a1..."                 names of every Python file: a new one may be imported
//     "values": "7b0c..."                  digest of every loss, gradient, parameter and state
//
// A certificate counts while all of that is as it was. An edited README changes nothing of it.
// Counterexample: data outside of the tree, and what a C++ library opens. Nobody notes them here;
// `--fresh` runs all checks anew.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "certify/check.h"
#include "llvm/Support/Error.h"
#include "record/record.h"
#include "session/recorded_side.h"
#include "store/digest.h"

namespace opguard {

struct Certificate {
  std::string key;
  std::vector<FileDigest> files;  // by name below the tree; of packages by their paths
  std::string modules;
  // What was found.
  std::string compared, sentence, values;
  std::map<std::string, std::string> settings;  // of the run's log header: versions, threads, seeds
  uint64_t prefix = 0;                          // Alignment::certified_prefix
};

// Digest of the interpreter's installed packages, of the processor, and of environment variables
// that change what torch computes.
// The command is one of a shell, and runs in the tree.
std::string environment_digest(const std::string& command);
// base: commit that the tree is compared with; "": none.
std::string certificate_key(const Check& check, const std::string& base);

// Files of the tree that a side ran or read, as they are now; and the names of its Python files.
llvm::Error note_inputs(const RecordedSide& side, Certificate& certificate);

// Of a run: every value it is judged by.
std::string values_digest(const Run& run);

// Nothing: there is none of this key, or what it depends on is no longer as it was.
std::optional<Certificate> valid_certificate(const std::string& store, const std::string& key,
                                             const std::string& tree);
llvm::Error write_certificate(const Certificate& certificate, const Check& check,
                              const std::string& store);

}  // namespace opguard
