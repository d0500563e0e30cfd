// JSON that nobody has looked at -> facts. A field of another kind is as one that is not there.
//
//   {"steps": 3, "pid": "x", "draws": [1, {"call": ["a"]}]}
//   steps 3, pid 0, one entry of `draws`, whose call is ""
//
// So no judge has to ask whether a fact is well formed. Counterexample: a file that is cut. Half of
// the facts would be judged as if nothing else had been seen, so it is an error.
//
// The cost: a file is held whole, as text and as JSON, and is refused over 64 MiB.
#include "determinism/facts.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "support/diagnostics.h"

namespace opguard {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr int64_t kVersion = 1;
constexpr uintmax_t kMostBytes = 64u << 20;

// Booleans as Python writes them, since switches are compared as texts: "True".
std::string as_text(const json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (value.is_boolean()) return value.get<bool>() ? "True" : "False";
  if (value.is_number_integer()) return std::to_string(value.get<int64_t>());
  return "";
}

int64_t as_number(const json& value) {
  return value.is_number_integer() ? value.get<int64_t>() : 0;
}

const json& at(const json& object, const char* key) {
  static const json kNothing;
  if (!object.is_object()) return kNothing;
  const auto found = object.find(key);
  return found == object.end() ? kNothing : *found;
}

}  // namespace

std::string Fact::text(const char* key) const { return as_text(at(fields, key)); }
bool Fact::is_null(const char* key) const { return at(fields, key).is_null(); }
int64_t Fact::number(const char* key) const { return as_number(at(fields, key)); }
bool Fact::flag(const char* key) const {
  const json& value = at(fields, key);
  return value.is_boolean() && value.get<bool>();
}

std::vector<std::string> Fact::texts(const char* key) const {
  std::vector<std::string> all;
  const json& list = at(fields, key);
  if (list.is_array())
    for (const json& value : list) all.push_back(as_text(value));
  return all;
}

std::vector<int64_t> Fact::numbers(const char* key) const {
  std::vector<int64_t> all;
  const json& list = at(fields, key);
  if (list.is_array())
    for (const json& value : list) all.push_back(as_number(value));
  return all;
}

std::vector<Fact> Fact::facts(const char* key) const {
  std::vector<Fact> all;
  const json& list = at(fields, key);
  if (list.is_array())
    for (const json& value : list)
      if (value.is_object()) all.push_back({value});
  return all;
}

CallSite Fact::place() const {
  const Fact held{at(fields, "place")};
  CallSite site{held.text("file"), held.text("function"), held.text("text"), 0,
                held.text("through")};
  const int64_t line = held.number("line");
  // A line that is none leaves the place unknown, with its file.
  if (line > 0 && line < INT32_MAX) site.line = static_cast<uint32_t>(line);
  return site;
}

const std::vector<Fact>& ProcessFacts::list(const std::string& kind) const {
  static const std::vector<Fact> kNone;
  const auto found = lists.find(kind);
  return found == lists.end() ? kNone : found->second;
}

TextMap ProcessFacts::map(const char* name) const {
  TextMap all;
  const json& held = at(values.fields, name);
  if (held.is_object())
    for (const auto& [key, value] : held.items()) all[key] = as_text(value);
  return all;
}

std::vector<const ProcessFacts*> RunFacts::trained() const {
  std::vector<const ProcessFacts*> found;
  for (const ProcessFacts& process : processes)
    if (process.steps > 0) found.push_back(&process);
  // A program that ended before its first step is judged too, without its loaders' workers.
  if (found.empty())
    for (const ProcessFacts& process : processes)
      if (!process.child) found.push_back(&process);
  std::stable_sort(found.begin(), found.end(),
                   [](const auto* a, const auto* b) { return a->rank < b->rank; });
  return found;
}

std::vector<const ProcessFacts*> RunFacts::helpers() const {
  std::vector<const ProcessFacts*> found;
  for (const ProcessFacts& process : processes)
    if (process.child && process.steps == 0) found.push_back(&process);
  return found;
}

uint64_t RunFacts::steps() const {
  int64_t most = 0;
  for (const ProcessFacts& process : processes) most = std::max(most, process.steps);
  return static_cast<uint64_t>(most);
}

llvm::Expected<ProcessFacts> parse_facts(const std::string& text, const std::string& name) {
  // Without exceptions: what does not parse is a value that is no object.
  const json found = json::parse(text, nullptr, false);
  if (!found.is_object()) return make_error(name + ": no facts: it is no JSON object");
  const Fact top{found};
  if (top.number("facts") != kVersion)
    return make_error(name + ": no facts of version " + std::to_string(kVersion));
  ProcessFacts process;
  process.pid = top.number("pid");
  process.parent = top.number("parent");
  process.rank = top.number("rank");
  process.steps = top.number("steps");
  process.child = top.flag("child");
  process.values = {at(found, "values")};
  for (const auto& [key, value] : found.items())
    // Every list at the top, whatever its name: a kind that no judge asks costs nothing.
    if (value.is_array()) process.lists[key] = top.facts(key.c_str());
  return process;
}

llvm::Expected<RunFacts> read_facts(const std::string& folder) {
  std::vector<fs::path> files;
  std::error_code ec;
  for (fs::directory_iterator it(folder, ec), end; !ec && it != end; it.increment(ec)) {
    const std::string name = it->path().filename().string();
    if (name.starts_with("facts-") && name.ends_with(".json")) files.push_back(it->path());
  }
  // So one folder always gives the same table.
  std::sort(files.begin(), files.end());
  RunFacts run;
  for (const fs::path& file : files) {
    if (fs::file_size(file, ec) > kMostBytes || ec)
      return make_error(file.string() + ": larger than any facts");
    std::ifstream in(file, std::ios::binary);
    const std::string text{std::istreambuf_iterator<char>(in), {}};
    auto process = parse_facts(text, file.string());
    if (!process) return process.takeError();
    run.processes.push_back(std::move(*process));
  }
  return run;
}

}  // namespace opguard
