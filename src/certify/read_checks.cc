// Checks from tables, with complaints at the place in the file where something is wrong.
//
//   [certify.fast-path]            name fast-path, which is no kind
//   check = "default-path"         so its kind is said
//   tier = "tolerance"             fits: only canaries are `recorded`, and they are nothing else
//   comand = "python t.py"         a check has no key 'comand'; did you mean 'command'?
//
// What stands in [certify] itself, and on the command line, is the default of every check
// (CheckDefaults).
//
// Counterexample: a fault in one check. The others are read on, so one call tells all that is
// wrong.
//
// The cost: checks times settings of the file.
#include "certify/read_checks.h"

#include <algorithm>
#include <array>
#include <functional>
#include <optional>
#include <string_view>

#include "support/nearest.h"

namespace opguard {
namespace {

constexpr std::array kKinds = {CheckKind::default_path, CheckKind::replay, CheckKind::resume,
                               CheckKind::ranks, CheckKind::canaries};
constexpr std::array kTiers = {Tier::bit_exact, Tier::tolerance, Tier::recorded};

template <typename Values, typename Name>
auto by_name(const Values& values, Name name, const std::string& text)
    -> std::optional<typename Values::value_type> {
  for (const auto value : values)
    if (text == name(value)) return value;
  return std::nullopt;
}

template <typename Values, typename Name>
std::string names_of(const Values& values, Name name) {
  std::string text;
  for (const auto value : values) text += (text.empty() ? "" : ", ") + std::string(name(value));
  return text;
}

Tier usual_tier(CheckKind kind) {
  if (kind == CheckKind::ranks) return Tier::tolerance;
  return kind == CheckKind::canaries ? Tier::recorded : Tier::bit_exact;
}

// Of canaries there is one tier, and of the others not that one.
bool fits(CheckKind kind, Tier tier) {
  return (kind == CheckKind::canaries) == (tier == Tier::recorded);
}

// A key of a check, the type of its value, and where that goes.
struct Key {
  const char* name;
  SettingKind kind;
  void (*put)(const Setting& setting, Check& check);
};

const Key kKeys[] = {
    {"command", SettingKind::text, [](auto& s, auto& c) { c.command = s.values[0]; }},
    {"first", SettingKind::text, [](auto& s, auto& c) { c.first = s.values[0]; }},
    {"then", SettingKind::text, [](auto& s, auto& c) { c.then = s.values[0]; }},
    {"many", SettingKind::text, [](auto& s, auto& c) { c.many = s.values[0]; }},
    {"against", SettingKind::text, [](auto& s, auto& c) { c.against = s.values[0]; }},
    {"with", SettingKind::list, [](auto& s, auto& c) { c.packages = s.values; }},
    {"deterministic", SettingKind::flag,
     [](auto& s, auto& c) { c.deterministic = s.values[0] == "true"; }},
    {"seed", SettingKind::number, [](auto& s, auto& c) { c.seed = std::stoull(s.values[0]); }},
};

class Reader {
 public:
  Reader(const SettingsFile& file, const CheckDefaults& defaults, Diagnostics& diags)
      : file_(file), defaults_(defaults), diags_(diags) {}

  std::vector<Check> read() {
    const std::string prefix = std::string(kCertifyTable) + ".";
    std::vector<Check> checks;
    for (const SettingTable& table : file_.tables)
      if (table.name.starts_with(prefix))
        checks.push_back(read_check(table, table.name.substr(prefix.size())));
    return checks;
  }

 private:
  void fault(const SettingPlace& at, std::string message) {
    diags_.add(file_.error_at(at, std::move(message)));
  }

  Check read_check(const SettingTable& table, const std::string& name) {
    Check check{.name = name,
                .command = defaults_.command,
                .against = defaults_.against,
                .packages = defaults_.packages,
                .deterministic = defaults_.deterministic,
                .seed = defaults_.seed,
                .at = table.at};
    std::vector<const Setting*> own;
    // These two come before the others: what a check may have depends on its kind.
    const Setting *kind = nullptr, *tier = nullptr;
    for (const Setting& setting : file_.settings) {
      if (setting.table != table.name) continue;
      if (setting.key == "check")
        kind = &setting;
      else if (setting.key == "tier")
        tier = &setting;
      else
        own.push_back(&setting);
    }
    read_kind(table, kind, check);
    check.tier = usual_tier(check.kind);
    // One run twice, as it is: control would hide a seed that is missing.
    if (check.kind == CheckKind::replay) check.deterministic = false;
    if (tier) read_tier(*tier, check);
    for (const Setting* setting : own) put(*setting, check);
    demand_commands(table, check);
    return check;
  }

  void read_kind(const SettingTable& table, const Setting* kind, Check& check) {
    // A table is called by its kind where it does not say one.
    const std::string text = kind && !kind->values.empty() ? kind->values[0] : check.name;
    if (const auto known = by_name(kKinds, [](CheckKind k) { return kind_name(k); }, text))
      check.kind = *known;
    else
      fault(kind ? kind->value_at : table.at,
            "'" + text + "' is no kind of check; 'check' takes " +
                names_of(kKinds, [](CheckKind k) { return kind_name(k); }));
  }

  void read_tier(const Setting& setting, Check& check) {
    const std::string text = setting.values.empty() ? "" : setting.values[0];
    const auto known = by_name(kTiers, [](Tier t) { return tier_name(t); }, text);
    if (!known)
      return fault(setting.value_at, "'" + text + "' is no tier; there are " +
                                         names_of(kTiers, [](Tier t) { return tier_name(t); }));
    if (!fits(check.kind, *known))
      return fault(setting.value_at,
                   std::string("a check of kind ") + kind_name(check.kind) + " is not " + text);
    check.tier = *known;
  }

  void put(const Setting& setting, Check& check) {
    const Key* key = std::find_if(std::begin(kKeys), std::end(kKeys),
                                  [&](const Key& k) { return setting.key == k.name; });
    if (key == std::end(kKeys)) {
      std::vector<std::string> names = {"check", "tier"};
      for (const Key& known : kKeys) names.push_back(known.name);
      return fault(setting.key_at,
                   "a check has no key '" + setting.key + "'" + did_you_mean(setting.key, names));
    }
    // `with = "timm"` is a list of one.
    const bool one = key->kind == SettingKind::list && setting.kind == SettingKind::text;
    // The only number is a seed, which has no sign.
    const bool whole = setting.kind != SettingKind::number || !setting.values[0].starts_with("-");
    if ((setting.kind != key->kind && !one) || !whole)
      return fault(setting.value_at, "'" + setting.key + "' takes " + told_type(key->kind));
    key->put(setting, check);
  }

  void demand_commands(const SettingTable& table, const Check& check) {
    auto demand = [&](const std::string& value, const char* key) {
      if (value.empty())
        fault(table.at, "check '" + check.name + "' needs '" + key + "', a shell command");
    };
    demand(check.command, "command");
    if (check.kind == CheckKind::resume) {
      demand(check.first, "first");
      demand(check.then, "then");
    }
    if (check.kind == CheckKind::ranks) demand(check.many, "many");
  }

  const SettingsFile& file_;
  const CheckDefaults& defaults_;
  Diagnostics& diags_;
};

}  // namespace

std::vector<Check> read_checks(const SettingsFile* file, const CheckDefaults& defaults,
                               Diagnostics& diags) {
  std::vector<Check> checks;
  if (file) checks = Reader(*file, defaults, diags).read();
  // A file that names a check means these alone; faults are no reason to run others.
  if (!checks.empty() || diags.has_errors()) return checks;
  for (const CheckKind kind : {CheckKind::default_path, CheckKind::replay})
    checks.push_back({.name = kind_name(kind),
                      .kind = kind,
                      .command = defaults.command,
                      .against = defaults.against,
                      .packages = defaults.packages,
                      .deterministic = defaults.deterministic && kind != CheckKind::replay,
                      .seed = defaults.seed});
  return checks;
}

}  // namespace opguard
