// certify/read_checks.h: the tables [certify.NAME] of a settings file, as checks.
#pragma once

#include <string>
#include <vector>

#include "certify/check.h"
#include "settings/settings_file.h"
#include "support/diagnostics.h"

namespace opguard {

inline constexpr const char* kCertifyTable = "certify";

// What [certify] and the command line say of every check.
struct CheckDefaults {
  std::string command{}, against{};
  std::vector<std::string> packages{};
  // Of every check but `replay`, which runs as the program is.
  bool deterministic = true;
  uint64_t seed = 0;
};

// In the file's order. Without a file, or one that names no check: default-path and replay. Faults
// are in `diags`, each with its place: an unknown key or kind, a value of another type, a check
// without the commands it needs.
std::vector<Check> read_checks(const SettingsFile* file, const CheckDefaults& defaults,
                               Diagnostics& diags);

}  // namespace opguard
