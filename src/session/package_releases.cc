// pip decides what a release needs. uv installs it where it is on PATH and finds it, else pip does.
//
//   needed()            pip install --dry-run --report: the release, and what is lacking
//   install_release()   these names with their versions, --no-deps, into the folder
//
// So nothing that the interpreter has is installed a second time. FOLDER.ready is written last,
// under FOLDER.lock: a folder without it was stopped half-way and is made anew.
#include "session/package_releases.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <filesystem>
#include <set>

#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Program.h"
#include "nlohmann/json.hpp"
#include "support/diagnostics.h"
#include "support/file_lock.h"
#include "support/launch.h"
#include "support/say.h"
#include "support/write_file.h"

namespace opguard {
namespace {

namespace fs = std::filesystem;

// Never installed beside the interpreter's own: gigabytes, and another arithmetic.
const std::set<std::string> kNever = {"torch", "triton"};

using ArgumentWords = std::vector<std::string>;

// log: a file for what it says; "": none.
llvm::Expected<LaunchResult> run_quietly(const ArgumentWords& command,
                                         const std::string& log = "") {
  LaunchOptions options;
  options.command = command;
  options.output = Output::capture;
  options.log = log;
  options.apart = true;
  auto result = launch(options);
  if (!result) return result;
  if (auto stopped = result->stopped()) return stopped;
  return result;
}

// pip, as this interpreter or another has it. Empty: nobody has.
ArgumentWords find_pip(const std::string& python) {
  for (const ArgumentWords& pip :
       {ArgumentWords{python, "-m", "pip"}, ArgumentWords{"python3", "-m", "pip"},
        ArgumentWords{"pip"}, ArgumentWords{"uv", "tool", "run", "pip"}}) {
    ArgumentWords asked = pip;
    asked.push_back("--version");
    auto result = run_quietly(asked);
    if (!result)
      llvm::consumeError(result.takeError());
    else if (result->failure().empty())
      return pip;
  }
  return {};
}

ArgumentWords with(ArgumentWords words, const ArgumentWords& more) {
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

struct Requirement {
  std::string name, version;
};

// What pip would install into the interpreter for this release: that, and what is missing there.
llvm::Expected<std::vector<Requirement>> needed(const std::string& python, const std::string& what,
                                                const std::string& folder, std::string& failure) {
  const std::string report = folder + ".json";
  ArgumentWords pip = find_pip(python);
  if (pip.empty()) return make_error("no pip can be asked: install it for " + python);
  // Another Python's pip resolves for the interpreter it is told.
  if (pip.front() != python) pip.insert(pip.end(), {"--python", python});
  auto result = run_quietly(with(pip, {"install", "--disable-pip-version-check", "--quiet",
                                       "--dry-run", "--report", report, what}),
                            folder + ".txt");
  if (!result) return result.takeError();
  std::vector<Requirement> found;
  if (!result->failure().empty()) {
    failure = what + " cannot be installed: " + last_lines(result->output, 1);
    return found;
  }
  auto buffer = llvm::MemoryBuffer::getFile(report);
  if (!buffer) return make_error("cannot read '" + report + "'");
  const auto json = nlohmann::json::parse((*buffer)->getBuffer().str(), nullptr, false);
  if (json.is_discarded() || !json.contains("install"))
    return make_error(report + ": not pip's report");
  for (const auto& one : json["install"])
    found.push_back({one["metadata"].value("name", std::string()),
                     one["metadata"].value("version", std::string())});
  return found;
}

}  // namespace

//   "1.10" > "1.9" as numbers; "4.38.0" and "4.38" are the same release
std::vector<uint64_t> release_numbers(const std::string& release) {
  std::vector<uint64_t> numbers;
  for (size_t at = 0; at < release.size();) {
    if (!std::isdigit(static_cast<unsigned char>(release[at]))) return {};
    uint64_t number = 0;
    for (; at < release.size() && std::isdigit(static_cast<unsigned char>(release[at])); ++at)
      number = number * 10 + uint64_t(release[at] - '0');
    numbers.push_back(number);
    if (at < release.size() && release[at] != '.') return {};
    ++at;
  }
  while (!numbers.empty() && numbers.back() == 0) numbers.pop_back();
  return numbers;
}

// pip prints them newest first, in one line behind a label; a pip that prints otherwise is an
// error.
llvm::Expected<std::vector<std::string>> list_releases(const std::string& python,
                                                       const std::string& package) {
  const ArgumentWords pip = find_pip(python);
  if (pip.empty())
    return make_error("no pip can be asked for the releases of " + package +
                      ": name them with --releases");
  auto result =
      run_quietly(with(pip, {"index", "--disable-pip-version-check", "versions", package}));
  if (!result) return result.takeError();
  if (std::string how = result->failure(); !how.empty())
    return make_error("pip does not tell the releases of " + package + " (" + how + ")\n" +
                      last_lines(result->output, 5));
  const std::string label = "Available versions: ";
  const size_t at = result->output.find(label);
  if (at == std::string::npos) return make_error("pip does not tell the releases of " + package);
  std::vector<std::string> releases;
  std::string line = result->output.substr(at + label.size());
  line = line.substr(0, line.find('\n'));
  for (size_t from = 0; from < line.size();) {
    const size_t end = std::min(line.find(", ", from), line.size());
    releases.push_back(line.substr(from, end - from));
    from = end + 2;
  }
  std::reverse(releases.begin(), releases.end());
  return releases;
}

// In the order of the list, which is pip's or the user's: versions are not sorted here.
llvm::Expected<std::vector<std::string>> releases_from_to(const std::string& package,
                                                          std::vector<std::string> listed,
                                                          const std::string& good,
                                                          const std::string& bad) {
  // Those with letters in them (1.0rc1, 1.0.post1) only where they are given by name.
  auto same = [](const std::string& x, const std::string& y) {
    return x == y || (!release_numbers(x).empty() && release_numbers(x) == release_numbers(y));
  };
  std::erase_if(listed, [&](const std::string& one) {
    return release_numbers(one).empty() && !same(one, good) && !same(one, bad);
  });
  auto find = [&](const std::string& wanted) {
    return std::find_if(listed.begin(), listed.end(),
                        [&](const std::string& one) { return same(one, wanted); });
  };
  for (const std::string& wanted : {good, bad})
    if (find(wanted) == listed.end())
      return make_error(package + " has no release " + wanted +
                        (listed.empty() ? std::string() : "; its last is " + listed.back()));
  const auto first = find(good), last = find(bad);
  if (first >= last)
    return make_error(good + " is not older than " + bad + ": give the good release first");
  return std::vector<std::string>(first, last + 1);
}

llvm::Expected<std::string> install_release(const std::string& python, const std::string& package,
                                            const std::string& release, const std::string& folder) {
  const std::string ready = folder + ".ready";
  if (fs::exists(ready)) return std::string();
  const std::string what = package + "==" + release;
  std::error_code error;
  fs::create_directories(fs::path(folder).parent_path(), error);
  auto lock = FileLock::take(folder + ".lock", [&] {
    say_outside("waiting for another search, which installs " + what + " in " +
                fs::path(folder).parent_path().string());
  });
  if (!lock) return lock.takeError();
  if (fs::exists(ready)) return std::string();  // by the one we waited for
  fs::remove_all(folder, error);                // of one that was stopped
  fs::create_directories(folder, error);
  if (error) return make_error("cannot make '" + folder + "': " + error.message());
  std::string failure;
  auto missing = needed(python, what, folder, failure);
  if (!missing) return missing.takeError();
  if (!failure.empty()) return failure;
  ArgumentWords names;
  for (const Requirement& one : *missing) {
    if (kNever.contains(one.name))
      return what + " asks for " + one.name + " " + one.version + ", and " + python +
             " has another";
    names.push_back(one.name + "==" + one.version);
  }
  // The interpreter has just this one: it is put into the folder all the same.
  if (names.empty()) names.push_back(what);
  // uv knows nothing of pip's settings: where it finds no such release, pip is asked.
  ArgumentWords by_pip = find_pip(python);
  if (by_pip.front() != python) by_pip.insert(by_pip.end(), {"--python", python});
  by_pip.insert(by_pip.end(), {"install", "--disable-pip-version-check", "--quiet"});
  std::vector<ArgumentWords> ways;
  if (llvm::sys::findProgramByName("uv"))
    ways.push_back({"uv", "pip", "install", "--quiet", "--python", python});
  ways.push_back(by_pip);
  for (const ArgumentWords& install : ways) {
    auto result =
        run_quietly(with(with(install, {"--no-deps", "--target", folder}), names), folder + ".txt");
    if (!result) return result.takeError();
    const bool failed = !result->failure().empty();
    if (!failed) break;
    if (&install == &ways.back())
      return what + " cannot be installed: " + last_lines(result->output, 1);
  }
  if (auto failed = write_file(ready, "")) return failed;
  return std::string();
}

}  // namespace opguard
