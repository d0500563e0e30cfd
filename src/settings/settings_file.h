// settings/settings_file.h: the standing values that a repository gives to options, with their
// places.
//
//   pyproject.toml                       opguard.toml
//   [tool.opguard]
//   with = ["transformers"]              with = ["transformers"]    of every command
//   [tool.opguard.diff]                  [diff]
//   steps = 20                           steps = 20                 of opguard diff alone
//   [tool.opguard.certify.resume]        [certify.resume]           a table in a table: by both
//   names
//
// What a key means is not known here: cli/settings.h puts values into options.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "support/diagnostics.h"

namespace opguard {

// 1-based line and character; `length` characters of that line.
struct SettingPlace {
  uint32_t line = 0, column = 0, length = 0;
  auto operator<=>(const SettingPlace&) const = default;
};

enum class SettingKind : uint8_t { flag, number, text, list, table, other };

// What a value of the kind is, for people: "true or false", "a list of strings".
const char* told_type(SettingKind kind);

struct Setting {
  std::string table;  // "diff", "certify.resume"; "": of every command
  std::string key;
  SettingKind kind = SettingKind::other;
  std::vector<std::string> values;  // as a command line has them: "true", "20"
  SettingPlace key_at, value_at;
  // toml++'s word for what `other` is, "floating-point", or "list with integer".
  std::string type;
};

// A command's table, or one in it, also an empty one.
struct SettingTable {
  std::string name;
  SettingPlace at;
};

struct SettingsFile {
  std::string path;    // absolute
  std::string name;    // as a user in the working folder calls it: "../pyproject.toml"
  std::string folder;  // relative paths in it are relative to this
  std::string text;
  std::vector<SettingTable> tables;
  std::vector<Setting> settings;  // in the file's order

  Diagnostic error_at(const SettingPlace& place, std::string message) const;
};

// `whole`: the file is ours, not a table of pyproject.toml. None: it has no table of ours, or the
// fault is in `diags`.
std::optional<SettingsFile> read_settings_file(const std::string& path, bool whole,
                                               Diagnostics& diags);

}  // namespace opguard
