// align/pair/settings.h: whether two runs were made under settings that let them be compared.
#pragma once

#include <string>
#include <vector>

#include "record/record.h"

namespace opguard {

struct SettingsReport {
  // Opguard's own determinism control and probe mode differ: the runs cannot be expected to agree.
  std::vector<std::string> refused;
  // Versions, thread counts, flags, world size: a possible cause, said and compared nevertheless.
  std::vector<std::string> noted;
  bool operator==(const SettingsReport&) const = default;
};

// One sentence for each difference, with both values. Host names, process ids and paths are
// expected to differ and are left out.
SettingsReport compare_settings(const Run& a, const Run& b);

}  // namespace opguard
