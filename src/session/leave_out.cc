// A file counts under the first of these reasons that holds:
//
//   --exclude "scratch"     excluded     asked for, so no --include keeps it
//   --include "vendor"      kept         likewise what the command itself names
//   .gitignore              ignored      git says so
//   vendor/flash/a.py       foreign      by a folder's name; of kForeign always
//   build/lib/model.py      foreign      by a folder's name; of kBuilt where git keeps no such file
//
// Counterexample: a tree whose every file lies in a folder `build`. All of it would be left out, so
// nothing is left out unasked.
//
// The cost: the patterns against each file's name, and two questions to git for all files together.
#include "session/leave_out.h"

#include <fnmatch.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <string_view>
#include <system_error>

#include "patcher/ignored.h"
#include "support/say.h"
#include "support/text.h"

namespace opguard {
namespace {

// ruff's default `exclude`, and the usual names for code of others. Caches, environments and
// site-packages are never read (support/source.cc).
constexpr std::array<std::string_view, 20> kForeign = {
    ".direnv",  ".ipynb_checkpoints", ".pyenv",         ".venv",       ".vscode",
    "3rdparty", "3rd_party",          "__pypackages__", "_vendor",     "extern",
    "external", "externals",          "third-party",    "third_party", "thirdparty",
    "vendor",   "vendored",           "venv",           "virtualenv",  "node_modules"};

// What a build makes has such names too, and so may a package of the user's.
constexpr std::array<std::string_view, 5> kBuilt = {".eggs", "_build", "buck-out", "build", "dist"};

// Without FNM_PATHNAME: `*` goes over slashes. A pattern also takes what lies below a folder it
// names.
bool matches(const std::string& pattern, const std::string& name) {
  return fnmatch(pattern.c_str(), name.c_str(), 0) == 0 ||
         fnmatch((pattern + "/*").c_str(), name.c_str(), 0) == 0;
}

bool matches(const std::vector<std::string>& patterns, const std::string& name) {
  return std::any_of(patterns.begin(), patterns.end(),
                     [&](const std::string& pattern) { return matches(pattern, name); });
}

// "vendor/" is meant as "vendor"; with the slash it would match nothing.
std::vector<std::string> without_slashes(std::vector<std::string> patterns) {
  for (std::string& pattern : patterns)
    while (pattern.ends_with('/')) pattern.pop_back();
  return patterns;
}

std::vector<std::string> excludes(const SourceChoice& choice) {
  std::vector<std::string> all = choice.exclude;
  all.insert(all.end(), choice.extend_exclude.begin(), choice.extend_exclude.end());
  return without_slashes(std::move(all));
}

// Whether a folder of the name is one of these.
template <size_t n>
bool lies_in(const std::string& name, const std::array<std::string_view, n>& folders) {
  for (size_t from = 0, slash; (slash = name.find('/', from)) != name.npos; from = slash + 1)
    if (std::find(folders.begin(), folders.end(),
                  std::string_view(name).substr(from, slash - from)) != folders.end())
      return true;
  return false;
}

struct TreeFile {
  std::string name, path;
};

// With a slash at its end, so that it is a prefix of the tree's paths and of no "tree_b/...".
std::string tree_of(const SourceSet& sources) {
  std::error_code error;
  for (const SourceRoot& root : sources.roots)
    if (root.package.empty())
      return std::filesystem::absolute(root.dir + "/", error).lexically_normal().string();
  return "/";
}

// Of the tree alone: a package was asked for by --with, wherever it lies.
std::vector<TreeFile> tree_files(const SourceSet& sources) {
  const std::string tree = tree_of(sources);
  std::vector<TreeFile> files;
  for (const SourceFile& file : sources.files)
    if (file.package.empty()) files.push_back({file.name, file.path});
  for (const UnreadPath& file : sources.unread)
    if (file.package.empty() && file.path.starts_with(tree))
      files.push_back({file.path.substr(tree.size()), file.path});
  return files;
}

// The folders of files that words of the command name: "scratch" of `python scratch/train.py`.
std::vector<std::string> named_folders(const std::vector<TreeFile>& files,
                                       const std::vector<std::string>& command) {
  std::set<std::string> words;
  for (const std::string& text : command)
    for (size_t from = 0, end; from < text.size(); from = end + 1) {
      end = std::min(text.find_first_of(" \t\n'\";=", from), text.size());
      std::string word = text.substr(from, end - from);
      while (word.starts_with("./")) word.erase(0, 2);
      words.insert(word);
      std::replace(word.begin(), word.end(), '.', '/');  // python -m scratch.train
      words.insert({word + ".py", word + "/__main__.py"});
    }
  std::vector<std::string> folders;
  for (const TreeFile& file : files)
    if (words.contains(file.name) || words.contains(file.path))
      folders.push_back(file.name.substr(0, file.name.rfind('/')));
  return folders;
}

// Names below the tree. `exported`: a revision was written out, so git is not there to be asked,
// and all of it is kept by git.
LeftOutFiles unasked(const std::vector<TreeFile>& files, const std::string& tree,
                     std::vector<std::string> include, bool exported) {
  include = without_slashes(std::move(include));
  std::vector<std::string> paths;
  for (const TreeFile& file : files) paths.push_back(file.path);
  const std::vector<bool> none(files.size());
  const std::vector<bool> ignored = exported ? none : ignored_by_git(tree, paths);
  const std::vector<bool> kept = exported ? none : kept_by_git(tree, paths);
  LeftOutFiles out;
  for (size_t i = 0; i < files.size(); ++i) {
    const std::string& name = files[i].name;
    if (matches(include, name)) continue;
    if (ignored[i])
      out.ignored.insert(name);
    else if (lies_in(name, kForeign) || (!exported && !kept[i] && lies_in(name, kBuilt)))
      out.foreign.insert(name);
  }
  if (out.ignored.size() + out.foreign.size() == files.size()) return {};
  return out;
}

// "build/, scratch/, vendor/, ..."
std::string told_folders(const std::set<std::string>& names) {
  constexpr size_t kShown = 3;
  std::set<std::string> folders;
  for (const std::string& name : names)
    folders.insert(name.find('/') == name.npos ? name : name.substr(0, name.find('/') + 1));
  std::string text;
  size_t shown = 0;
  for (const std::string& folder : folders)
    if (shown < kShown) text += (shown++ ? ", " : "") + folder;
  return folders.size() > kShown ? text + ", ..." : text;
}

}  // namespace

std::set<std::string> LeftOutFiles::all() const {
  std::set<std::string> names = excluded;
  names.insert(ignored.begin(), ignored.end());
  names.insert(foreign.begin(), foreign.end());
  return names;
}

void LeftOutFiles::add(const LeftOutFiles& other) {
  excluded.insert(other.excluded.begin(), other.excluded.end());
  ignored.insert(other.ignored.begin(), other.ignored.end());
  foreign.insert(other.foreign.begin(), other.foreign.end());
}

void say_left_out(const LeftOutFiles& left_out, const SourceChoice& choice) {
  for (const std::string& pattern : excludes(choice))
    if (std::none_of(left_out.excluded.begin(), left_out.excluded.end(),
                     [&](const std::string& name) { return matches(pattern, name); }))
      say("note: --exclude " + pattern + " matches no file");
  if (!left_out.excluded.empty())
    say_step(counted(left_out.excluded.size(), "file") + " left out by --exclude");
  if (!left_out.ignored.empty())
    say_step(counted(left_out.ignored.size(), "file") + " left out, which git ignores (" +
             told_folders(left_out.ignored) + "); --include NAME takes them in");
  if (!left_out.foreign.empty())
    say_step(counted(left_out.foreign.size(), "file") + " left out as built or of others (" +
             told_folders(left_out.foreign) + "); --include NAME takes them in");
}

// Of the tree alone: a package may have a file of the same name.
void erase(SourceSet& sources, const std::set<std::string>& names) {
  if (names.empty()) return;
  std::erase_if(sources.files, [&](const SourceFile& file) {
    return file.package.empty() && names.contains(file.name);
  });
  const std::string tree = tree_of(sources);
  std::erase_if(sources.unread, [&](const UnreadPath& file) {
    return file.package.empty() && file.path.starts_with(tree) &&
           names.contains(file.path.substr(tree.size()));
  });
}

void leave_out(SourceSet& sources, const SourceChoice& choice) {
  const std::vector<std::string> patterns = excludes(choice);
  if (patterns.empty()) return;
  LeftOutFiles out;
  // Files of packages too: "transformers/generation".
  std::erase_if(sources.files, [&](const SourceFile& file) {
    return matches(patterns, file.name) && out.excluded.insert(file.name).second;
  });
  for (const TreeFile& file : tree_files({sources.roots, {}, sources.unread}))
    if (matches(patterns, file.name)) out.excluded.insert(file.name);
  erase(sources, out.excluded);
  say_left_out(out, choice);
}

void leave_out_unasked(SourceSet& sources, const SourceChoice& choice) {
  const LeftOutFiles out = unasked(tree_files(sources), tree_of(sources), choice.include, false);
  erase(sources, out.all());
  say_left_out(out, {});
}

llvm::Expected<LeftOutFiles> left_out_of(const std::string& tree, const SourceChoice& choice,
                                         const std::vector<std::string>& command, bool exported) {
  auto sources = read_sources({{"", tree, ""}});
  if (!sources) return sources.takeError();
  const std::vector<TreeFile> files = tree_files(*sources);
  std::vector<std::string> include = choice.include;
  for (std::string& folder : named_folders(files, command)) include.push_back(std::move(folder));
  LeftOutFiles out = unasked(files, tree, include, exported);
  const std::vector<std::string> patterns = excludes(choice);
  for (const TreeFile& file : files)
    if (matches(patterns, file.name)) {
      out.excluded.insert(file.name);
      out.ignored.erase(file.name);
      out.foreign.erase(file.name);
    }
  return out;
}

}  // namespace opguard
