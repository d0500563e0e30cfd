// missing_data() guesses from what a failed program has printed, and hints; it links nothing
// itself.
//
//   FileNotFoundError: [Errno 2] No such file or directory: 'data/train.bin'
//
// "data/train.bin" is a quoted text of the last 40 lines. The repository has it, the exported tree
// has no `data`: the hint is `--link data`, the outermost folder that is lacking. Counterexample: a
// file that neither has is the program's own fault, and nothing is said.
#include "session/link_data.h"

#include <algorithm>
#include <deque>
#include <filesystem>
#include <fstream>
#include <string_view>

#include "support/diagnostics.h"

namespace opguard {
namespace {

namespace fs = std::filesystem;

constexpr size_t kLastLines = 40;  // of a failed program: a traceback's end names what it missed
constexpr size_t kMostNamed = 3;

// `path` below `folder`, "" if it is not.
// By text alone: links are not followed, so "data/../../x" is refused and a link inside is not.
std::string below(const fs::path& folder, const fs::path& path) {
  const std::string inside = path.lexically_normal().lexically_relative(folder).generic_string();
  return inside == "." || inside == ".." || inside.starts_with("../") ? "" : inside;
}

llvm::Error cannot_link(const fs::path& target, const std::error_code& error) {
  return make_error("cannot link '" + target.string() + "': " + error.message());
}

// The revision's own folders stay, and what they lack is linked.
llvm::Error link_into(const fs::path& source, const fs::path& target) {
  std::error_code error;
  const fs::file_status there = fs::symlink_status(target, error);
  if (!fs::exists(there)) {
    fs::create_symlink(source, target, error);
    return error ? cannot_link(target, error) : llvm::Error::success();
  }
  if (!fs::is_directory(there) || !fs::is_directory(source, error)) return llvm::Error::success();
  for (fs::directory_iterator it(source, error), end; !error && it != end; it.increment(error))
    if (llvm::Error failed = link_into(it->path(), target / it->path().filename())) return failed;
  return error ? cannot_link(target, error) : llvm::Error::success();
}

// As --link would take it: the outermost folder that the tree lacks. "": it lacks nothing there.
std::string lacking(const fs::path& repository, const fs::path& tree, const std::string& name) {
  std::error_code error;
  if (name.empty() || !fs::exists(repository / name, error)) return "";
  fs::path path;
  for (const fs::path& part : fs::path(name)) {
    path /= part;
    if (!fs::exists(tree / path, error)) return path.generic_string();
  }
  return "";
}

// Held are kLastLines lines, however long the output is.
std::deque<std::string> tail(const std::string& path) {
  std::deque<std::string> lines;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    lines.push_back(std::move(line));
    if (lines.size() > kLastLines) lines.pop_front();
  }
  return lines;
}

// Words and quoted texts: each may be a path, or a module's name.
//   File "/w/tree_a/train.py", line 3     File, /w/tree_a/train.py (twice), line, 3
std::vector<std::string> names_in(const std::string& line) {
  std::vector<std::string> names;
  constexpr std::string_view kEnds = " \t'\"`,;()[]<>=";
  for (size_t from = 0; from < line.size();) {
    size_t end = std::min(line.find_first_of(kEnds, from), line.size());
    std::string word = line.substr(from, end - from);
    while (!word.empty() && (word.back() == '.' || word.back() == ':')) word.pop_back();
    if (!word.empty()) names.push_back(std::move(word));
    from = end + 1;
  }
  // A path may hold what ends a word.
  for (const char quote : {'\'', '"'})
    for (size_t from = line.find(quote); from != std::string::npos;) {
      const size_t end = line.find(quote, from + 1);
      if (end == std::string::npos) break;
      names.push_back(line.substr(from + 1, end - from - 1));
      from = line.find(quote, end + 1);
    }
  return names;
}

}  // namespace

llvm::Error link_data(const std::vector<std::string>& paths, const std::string& repository,
                      const std::string& tree) {
  for (const std::string& path : paths) {
    const std::string name = below(repository, fs::path(repository) / path);
    if (name.empty() || name == ".git" || name.starts_with(".git/"))
      return make_error("--link " + path + ": not a file or folder below " + repository);
    std::error_code error;
    const fs::path source = fs::path(repository) / name, target = fs::path(tree) / name;
    if (!fs::exists(source, error))
      return make_error("--link " + path + ": " + repository + " has no such file or folder");
    // A link that the revision holds may lead anywhere: nothing is made behind one.
    const fs::path folder = fs::weakly_canonical(target.parent_path(), error);
    if (error || (folder != tree && below(fs::canonical(tree, error), folder).empty()))
      return make_error("--link " + path + ": the revision has a link to elsewhere on its way");
    fs::create_directories(folder, error);
    if (error) return cannot_link(folder, error);
    if (llvm::Error failed = link_into(source, target)) return failed;
  }
  return llvm::Error::success();
}

std::vector<std::string> missing_data(const std::vector<std::string>& outputs,
                                      const std::string& repository, const std::string& tree) {
  std::vector<std::string> found;
  auto add = [&](const std::string& name) {
    const std::string path = lacking(repository, tree, name);
    if (path.empty() || found.size() == kMostNamed) return;
    if (std::find(found.begin(), found.end(), path) == found.end()) found.push_back(path);
  };
  for (const std::string& output : outputs)
    for (const std::string& line : tail(output))
      for (const std::string& name : names_in(line)) {
        add(below(tree, fs::path(tree) / name));
        if (name.find('/') != std::string::npos) continue;
        // A module: "data_utils.tokens" is data_utils/tokens.py, or in data_utils.py.
        std::string module = name;
        std::replace(module.begin(), module.end(), '.', '/');
        for (const std::string& file :
             {module, module + ".py", name.substr(0, name.find('.')) + ".py"})
          add(below(tree, fs::path(tree) / file));
      }
  return found;
}

}  // namespace opguard
