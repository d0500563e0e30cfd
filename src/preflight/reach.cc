#include "preflight/reach.h"

#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "keep/python_flags.h"
#include "support/diagnostics.h"
#include "support/install.h"

namespace opguard {
namespace {

namespace fs = std::filesystem;

constexpr size_t kShownCommands = 3;

std::string inherited(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

// The variable's value, "" if it is not there; the last one counts.
std::string* find(Variables& environment, const std::string& name) {
  for (auto at = environment.rbegin(); at != environment.rend(); ++at)
    if (at->first == name) return &at->second;
  return nullptr;
}

// python, python3, python3.12, python3.13t, pypy3.10
bool names_python(const std::string& program) {
  std::string name = fs::path(program).filename().string();
  for (std::string start : {"python", "pypy"}) {
    if (name.rfind(start, 0) != 0) continue;
    return std::all_of(name.begin() + start.size(), name.end(), [](unsigned char c) {
      return std::isdigit(c) || c == '.' || c == 't' || c == 'd';
    });
  }
  return false;
}

std::string why_not(char flag) {
  return flag == 'S' ? "imports no sitecustomize" : "ignores PYTHONPATH";
}

}  // namespace

bool add_preload(const std::string& library, Variables& environment) {
  // The loader separates libraries by spaces and colons, and knows no quotes.
  if (library.find_first_of(" :") != std::string::npos || access(library.c_str(), R_OK) != 0)
    return false;
  // LD_PRELOAD has what the user preloads as well; the other names ours alone.
  for (const char* name : {"LD_PRELOAD", "OPGUARD_PRELOAD"}) {
    std::string* value = find(environment, name);
    if (!value) {
      environment.emplace_back(name, name[0] == 'L' ? inherited(name) : "");
      value = &environment.back().second;
    }
    *value += (value->empty() ? "" : ":") + library;
  }
  return true;
}

Variables python_environment() {
  const std::string package = python_package_dir(), boot = package + "/boot";
  Variables environment;
  if (add_preload(package + "/opguard_keep.so", environment)) {
    environment.emplace_back("OPGUARD_BOOT", boot);
    environment.emplace_back("OPGUARD_PYTHONPATH", "");  // a surrounding run's
    return environment;
  }
  std::string given = inherited("PYTHONPATH");
  environment.emplace_back("PYTHONPATH", given.empty() ? boot : boot + ":" + given);
  return environment;
}

Variables own_run_environment() {
  Variables environment = python_environment();
  environment.emplace_back("OPGUARD_NO_BYTECODE", "1");
  return environment;
}

// The first word alone: what a shell script starts is seen when it runs, and told by unreached().
llvm::Error check_reachable(const std::vector<std::string>& command) {
  if (command.empty() || !names_python(command[0])) return llvm::Error::success();
  std::vector<const char*> words;
  for (const std::string& word : command) words.push_back(word.c_str());
  const char flag = isolating_flag(static_cast<int>(words.size()), words.data());
  if (!flag) return llvm::Error::success();
  return make_error(std::string("the program is started with -") + flag + ", with which Python " +
                    why_not(flag) + ", the way opguard enters it: " + quote(command) +
                    "; start it without that flag");
}

std::string unreached(const std::string& folder) {
  std::vector<std::string> found;  // "-I (python -I train.py)"
  std::error_code ec;
  for (fs::directory_iterator it(folder, ec), end; !ec && it != end; it.increment(ec)) {
    if (it->path().filename().string().rfind("unreached-", 0) != 0) continue;
    std::ifstream file(it->path());
    std::string flag, command;
    std::getline(file, flag);
    std::getline(file, command);
    if (flag.size() == 2)
      found.push_back(flag + ", with which it " + why_not(flag[1]) + ": " + command);
  }
  if (found.empty())
    return "the program never imported torch in a Python that could be entered (what sudo, ssh "
           "or a container starts cannot be)";
  std::sort(found.begin(), found.end());
  found.erase(std::unique(found.begin(), found.end()), found.end());
  std::string text = "a Python that could not be entered was started with ";
  for (size_t i = 0; i < std::min(found.size(), kShownCommands); ++i)
    text += (i ? "; another with " : "") + found[i];
  if (found.size() > kShownCommands)
    text += "; and " + std::to_string(found.size() - kShownCommands) + " more";
  return text;
}

}  // namespace opguard
