// Three kinds of numbers, three ways to be worse, and what is done with a difference that somebody
// has accepted.
//
//   events             1,204, recorded 1,200       worse: any other number is
//   graph_breaks       2, recorded 0               worse: more is
//   coverage_permille  940, recorded 985           worse: less is
//   peak_bytes         1.05 of what was recorded   fine: up to 1.10 of it is
//
// Counterexample: a number that only one side knows, as after an upgrade of opguard. It is not
// compared.
//
// The cost: the file is read whole; names are compared as sorted lists.
#include "certify/recorded_values.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>

#include "nlohmann/json.hpp"
#include "report/identity.h"
#include "support/diagnostics.h"
#include "support/write_file.h"

namespace opguard {
namespace {

using Json = nlohmann::ordered_json;

// Any other value than the recorded one is a fault: what ran has changed.
const std::set<std::string> kExact = {"boundaries", "events"};
// Less than recorded is a fault; of all others more is.
const std::set<std::string> kAtLeast = {"coverage_permille"};
const std::set<std::string> kWithSlack = {"peak_bytes"};

// Of thousands of kernels that are new the first few say enough.
constexpr size_t kNamesShown = 3;

// "aten::mul, aten::rsqrt, ...": those of `some` that `others` lacks; "" none.
std::string only_in(const std::vector<std::string>& some, const std::vector<std::string>& others) {
  std::vector<std::string> own;
  std::set_difference(some.begin(), some.end(), others.begin(), others.end(),
                      std::back_inserter(own));
  std::string text;
  for (size_t i = 0; i < own.size() && i < kNamesShown; ++i) text += (i > 0 ? ", " : "") + own[i];
  return own.size() > kNamesShown ? text + ", ..." : text;
}

bool is_worse(const std::string& name, uint64_t recorded, uint64_t now) {
  if (kExact.contains(name)) return now != recorded;
  if (kAtLeast.contains(name)) return now < recorded;
  if (kWithSlack.contains(name)) return double(now) > double(recorded) * (1 + kMemorySlack);
  return now > recorded;
}

// As text only: of such dates the order of letters is that of days, so nothing is computed with
// them.
bool is_date(const std::string& text) {
  if (text.size() != 10) return false;
  for (size_t i = 0; i < text.size(); ++i)
    if ((i == 4 || i == 7) ? text[i] != '-' : !isdigit(uint8_t(text[i]))) return false;
  return true;
}

}  // namespace

// What a person has changed by hand is complained of at once: a drift without a reason or without
// an end is refused.
llvm::Expected<RecordedValues> read_recorded(const std::string& path) {
  RecordedValues values;
  std::error_code error;
  if (!std::filesystem::exists(path, error)) return values;
  std::ifstream file(path, std::ios::binary);
  const std::string text(std::istreambuf_iterator<char>(file), {});
  try {
    const Json json = Json::parse(text);
    const int version = json.at("opguard_certified").get<int>();
    if (version != kRecordedVersion)
      return make_error(path + ": version " + std::to_string(version) + ", this opguard reads " +
                        std::to_string(kRecordedVersion));
    for (const auto& [name, item] : json.at("canaries").items()) {
      Canaries& canaries = values.canaries[name];
      for (const auto& [key, value] : item.items()) {
        // Numbers and names are told apart by their form, so one that this version does not know is
        // kept.
        if (value.is_array()) {
          canaries.names[key] = value.get<std::vector<std::string>>();
          // only_in() needs them in order, and a person may have moved lines.
          std::sort(canaries.names[key].begin(), canaries.names[key].end());
        } else if (key == "reason") {
          canaries.reason = value.get<std::string>();
        } else {
          canaries.numbers[key] = value.get<uint64_t>();
        }
      }
    }
    for (const Json& item : json.at("accepted")) {
      AcceptedDrift& drift = values.accepted.emplace_back();
      drift.check = item.at("check").get<std::string>();
      drift.place = item.at("place").get<std::string>();
      drift.values = item.at("values").get<std::string>();
      drift.machine = item.at("machine").get<std::string>();
      drift.reason = item.at("reason").get<std::string>();
      drift.until = item.at("until").get<std::string>();
      if (!is_date(drift.until))
        return make_error(path + ": until '" + drift.until + "' is no date such as 2026-12-31");
      if (drift.reason.empty())
        return make_error(path + ": an accepted drift of " + drift.check + " has no reason");
    }
  } catch (const Json::exception& e) {
    return make_error(path + ": not what certify has recorded (" + e.what() + ")");
  }
  return values;
}

llvm::Error write_recorded(const RecordedValues& values, const std::string& path) {
  Json json = {{"opguard_certified", kRecordedVersion}};
  json["canaries"] = Json::object();
  for (const auto& [name, canaries] : values.canaries) {
    Json item = Json::object();
    for (const auto& [key, value] : canaries.numbers) item[key] = value;
    for (const auto& [key, names] : canaries.names) item[key] = names;
    item["reason"] = canaries.reason;
    json["canaries"][name] = std::move(item);
  }
  json["accepted"] = Json::array();
  for (const AcceptedDrift& drift : values.accepted)
    json["accepted"].push_back({{"check", drift.check},
                                {"place", drift.place},
                                {"values", drift.values},
                                {"machine", drift.machine},
                                {"reason", drift.reason},
                                {"until", drift.until}});
  // One value a line: the file is committed, and its diffs are read.
  return write_file(path, json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n");
}

std::vector<std::string> compare_canaries(const Canaries& recorded, const Canaries& now) {
  std::vector<std::string> worse;
  for (const auto& [name, value] : recorded.numbers) {
    const auto at = now.numbers.find(name);
    if (at == now.numbers.end() || !is_worse(name, value, at->second)) continue;
    worse.push_back(name + ": " + std::to_string(at->second) + ", recorded " +
                    std::to_string(value));
  }
  for (const auto& [name, known] : recorded.names) {
    const auto at = now.names.find(name);
    if (at == now.names.end() || at->second == known) continue;
    const std::string more = only_in(at->second, known), less = only_in(known, at->second);
    worse.push_back(name + ": " + (more.empty() ? "" : "new " + more) +
                    (more.empty() || less.empty() ? "" : "; ") +
                    (less.empty() ? "" : "gone " + less));
  }
  return worse;
}

// A time such as "2026-12-31 23:59" is cut to a day before it is compared.
bool is_accepted_here(const std::vector<AcceptedDrift>& accepted, const AcceptedDrift& seen,
                      const std::string& now) {
  return std::any_of(accepted.begin(), accepted.end(), [&](const AcceptedDrift& drift) {
    return drift.check == seen.check && drift.machine == seen.machine &&
           drift.values == seen.values && now.substr(0, drift.until.size()) <= drift.until;
  });
}

// An entry that still counts goes before one that has expired; of several expired ones the last is
// told.
DriftAnswer find_drift(const std::vector<AcceptedDrift>& accepted, const AcceptedDrift& seen,
                       const std::string& today) {
  DriftAnswer answer;
  for (const AcceptedDrift& drift : accepted) {
    if (drift.check != seen.check) continue;
    const bool same =
        drift.machine == seen.machine ? drift.values == seen.values : drift.place == seen.place;
    if (!same) continue;
    answer.entry = drift;
    answer.drift = today <= drift.until ? Drift::accepted : Drift::expired;
    if (answer.drift == Drift::accepted) break;
  }
  return answer;
}

}  // namespace opguard
