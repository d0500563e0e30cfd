// align/pair/settings.h: whether two runs were made under settings that let them be compared.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "record/record.h"

namespace opguard {

struct SettingDifference {
  std::string key;                  // "torch", "control.seed", "world size"
  std::optional<std::string> a, b;  // none: not set
  bool operator==(const SettingDifference&) const = default;
};

struct SettingsReport {
  // Opguard's own determinism control and probe mode differ: the runs cannot be expected to agree.
  std::vector<SettingDifference> refused;
  // Versions, thread counts, flags, world size: a possible cause, said and compared nevertheless.
  std::vector<SettingDifference> noted;
  // Those that refuse first.
  std::vector<SettingDifference> all() const;
  bool operator==(const SettingsReport&) const = default;
};

// Host names, process ids and paths are expected to differ and are left out. So is what a log that
// was cut short does not tell yet.
SettingsReport compare_settings(const Run& a, const Run& b);

}  // namespace opguard
