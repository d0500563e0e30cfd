// Values as a command line would have them, each with its place, so that one reader of options
// serves both.
//
//   steps = 20           {"20"}, a number, value at 1:9
//   with = ["timm"]      {"timm"}, a list
//   steps = 1.5          other, of type "floating-point": who reads the key complains of it
//
// Tables are read two deep: [diff], [certify.resume]. What lies deeper stays a value of kind
// `table`.
//
// Counterexample: a fault in the TOML itself. The first one ends the reading, as no place behind it
// can be trusted.
#include "settings/settings_file.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string_view>
#include <system_error>
#include <tuple>
#include <utility>

#include "support/source.h"
#include "toml++/toml.h"

namespace opguard {
namespace {

namespace fs = std::filesystem;

// Of a region on one line; else the rest of its first line is not underlined.
SettingPlace place_of(const toml::source_region& region) {
  SettingPlace place{region.begin.line, region.begin.column, 0};
  if (region.end.line == region.begin.line && region.end.column > region.begin.column)
    place.length = region.end.column - region.begin.column;
  return place;
}

std::string type_name(const toml::node& node) {
  std::ostringstream text;
  text << node.type();
  return text.str();
}

// A list holds strings alone; of another one the place and the type are those of the first item
// that is none.
void put_value(const toml::node& node, Setting& setting) {
  setting.type = type_name(node);
  if (const auto* flag = node.as_boolean()) {
    setting.kind = SettingKind::flag;
    setting.values = {flag->get() ? "true" : "false"};
  } else if (const auto* number = node.as_integer()) {
    setting.kind = SettingKind::number;
    setting.values = {std::to_string(number->get())};
  } else if (const auto* text = node.as_string()) {
    setting.kind = SettingKind::text;
    setting.values = {text->get()};
  } else if (const auto* list = node.as_array()) {
    setting.kind = SettingKind::list;
    for (const toml::node& item : *list) {
      const auto* word = item.as_string();
      if (!word) {
        setting.kind = SettingKind::other;
        setting.type = "list with " + type_name(item);
        setting.value_at = place_of(item.source());
        return;
      }
      setting.values.push_back(word->get());
    }
  } else if (node.is_table()) {
    setting.kind = SettingKind::table;
  }
}

Setting setting_of(const std::string& table, const toml::key& key, const toml::node& node) {
  Setting setting;
  setting.table = table;
  setting.key = std::string(key.str());
  setting.key_at = place_of(key.source());
  setting.value_at = place_of(node.source());
  put_value(node, setting);
  return setting;
}

void read_table(const toml::table& table, SettingsFile& file) {
  for (const auto& [key, node] : table) {
    const toml::table* command = node.as_table();
    if (!command) {
      file.settings.push_back(setting_of("", key, node));
      continue;
    }
    const std::string name(key.str());
    file.tables.push_back({name, place_of(key.source())});
    for (const auto& [own_key, own_node] : *command) {
      const toml::table* inner = own_node.as_table();
      if (!inner) {
        file.settings.push_back(setting_of(name, own_key, own_node));
        continue;
      }
      const std::string inner_name = name + "." + std::string(own_key.str());
      file.tables.push_back({inner_name, place_of(own_key.source())});
      for (const auto& [inner_key, inner_node] : *inner)
        file.settings.push_back(setting_of(inner_name, inner_key, inner_node));
    }
  }
  // toml++ gives them by name.
  std::sort(file.settings.begin(), file.settings.end(),
            [](const Setting& a, const Setting& b) { return a.key_at < b.key_at; });
  std::sort(file.tables.begin(), file.tables.end(),
            [](const SettingTable& a, const SettingTable& b) { return a.at < b.at; });
}

// As a user would type it: "../pyproject.toml".
std::string name_from_here(const fs::path& path) {
  std::error_code error;
  const fs::path name = path.lexically_relative(fs::current_path(error));
  return error || name.empty() ? path.string() : name.string();
}

}  // namespace

const char* told_type(SettingKind kind) {
  switch (kind) {
    case SettingKind::flag:
      return "true or false";
    case SettingKind::number:
      return "a whole number";
    case SettingKind::list:
      return "a list of strings";
    default:
      return "a string";
  }
}

Diagnostic SettingsFile::error_at(const SettingPlace& place, std::string message) const {
  const SourceFile source = make_source("", name, name, text);
  Diagnostic item;
  item.file = name;
  item.line = place.line;
  item.column = place.column > 0 ? place.column - 1 : 0;
  item.length = place.length;
  item.message = std::move(message);
  item.line_text = std::string(source.line_text(place.line));
  return item;
}

std::optional<SettingsFile> read_settings_file(const std::string& path, bool whole,
                                               Diagnostics& diags) {
  SettingsFile file;
  file.path = path;
  file.name = name_from_here(path);
  file.folder = fs::path(path).parent_path().string();
  std::ifstream stream(path, std::ios::binary);
  if (!stream) {
    Diagnostic item;
    item.file = file.name;
    item.message = "cannot be read";
    diags.add(std::move(item));
    return std::nullopt;
  }
  file.text.assign(std::istreambuf_iterator<char>(stream), {});
  try {
    const toml::table all = toml::parse(file.text, file.name);
    const toml::node* own = &all;
    if (!whole) {
      const toml::table* tool = all["tool"].as_table();
      own = tool ? tool->get("opguard") : nullptr;
      if (!own) return std::nullopt;
    }
    const toml::table* table = own->as_table();
    if (!table) {
      diags.add(file.error_at(place_of(own->source()),
                              "tool.opguard is a table, not a " + type_name(*own)));
      return std::nullopt;
    }
    read_table(*table, file);
  } catch (const toml::parse_error& error) {
    diags.add(file.error_at({error.source().begin.line, error.source().begin.column, 0},
                            std::string(error.description())));
    return std::nullopt;
  }
  return file;
}

}  // namespace opguard
