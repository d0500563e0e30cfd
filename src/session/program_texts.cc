// Whether a file of a log is still what ran is asked of every recorded expression. Its text has to
// stand at its line and column. The log has it as one line, so any run of blanks, line breaks and
// backslashes in the file is one blank there.
//
//   log     line 12, column 8, "torch.add(x, y)"
//   file    12:         torch.add(x,
//           13:                   y)                the same
//
// A file in which only the other run has sites is looked for beside this run's own files: same
// package, same name below the root.
#include "session/program_texts.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <set>
#include <sstream>

namespace opguard {
namespace {

namespace fs = std::filesystem;

constexpr uintmax_t kMostBytes = 256 * 1024;  // of a settings file

// Nothing for what is no text, or more than anybody writes by hand.
// "" for a file that has a zero byte: it is data.
std::string text_of(const std::string& path) {
  std::error_code error;
  if (!fs::is_regular_file(path, error) || fs::file_size(path, error) > kMostBytes || error)
    return "";
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str().find('\0') == std::string::npos ? text.str() : "";
}

// By their names below each tree. A file that one side alone has opened differs from "".
std::vector<TextPair> differing_texts(const SideTexts& a, const SideTexts& b) {
  std::map<std::string, TextPair> pairs;
  const SideTexts* sides[2] = {&a, &b};
  for (int side : {0, 1})
    for (const std::string& path : sides[side]->read) {
      const std::string& tree = sides[side]->tree;
      if (!path.starts_with(tree + "/")) continue;
      TextPair& pair = pairs[path.substr(tree.size() + 1)];
      pair.name = path.substr(tree.size() + 1);
      pair.path[side] = path;
      pair.text[side] = text_of(path);
    }
  std::vector<TextPair> differing;
  for (auto& [name, pair] : pairs)
    if (pair.text[0] != pair.text[1]) differing.push_back(std::move(pair));
  return differing;
}

// The file holds a recorded expression where it was; both as one line.
bool holds(const SourceFile& file, const Location& at) {
  if (at.line > file.line_starts.size()) return false;
  size_t from = file.line_starts[at.line - 1];
  // Columns count characters: continuation bytes of UTF-8 are none.
  for (uint32_t column = 0; column < at.column && from < file.text.size(); ++column) do {
      ++from;
    } while (from < file.text.size() && (static_cast<unsigned char>(file.text[from]) >> 6) == 2);
  auto blank = [](char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\\'; };
  size_t read = 0;
  for (; from < file.text.size() && read < at.text.size(); ++from) {
    if (blank(file.text[from])) {
      if (read > 0 && at.text[read] == ' ' && at.text[read - 1] != ' ') ++read;
      continue;
    }
    if (at.text[read] != file.text[from]) return false;
    ++read;
  }
  return read == at.text.size();
}

// The sources of a run's sites.
// A file with one expression that is not in its place is left out as a whole.
SourceSet sources_of(const Run& run) {
  std::map<std::string, std::vector<const Location*>> places;  // by path
  for (const ProcessLog& log : run.processes)
    for (const auto& [boundary, at] : log.locations)
      if (!at.path.empty() && !at.text.empty()) places[at.path].push_back(&at);
  SourceSet sources;
  for (const auto& [path, all] : places) {
    std::ifstream in(path, std::ios::binary);
    std::ostringstream text;
    text << in.rdbuf();
    SourceFile file = make_source(all[0]->package, all[0]->file, path, text.str());
    if (std::all_of(all.begin(), all.end(), [&](const Location* at) { return holds(file, *at); }))
      sources.files.push_back(std::move(file));
  }
  return sources;
}

// A file that only the other run has sites in lies beside this run's own, if it is there.
void add_untouched(const Run& run, const SourceSet& other, SourceSet& sources) {
  // One with sites of this run is among the sources, or is no longer what ran.
  std::set<std::pair<std::string, std::string>> own;
  for (const ProcessLog& log : run.processes)
    for (const auto& [boundary, at] : log.locations) own.emplace(at.package, at.file);
  std::map<std::string, std::string> roots;  // package -> folder
  for (const SourceFile& file : sources.files)
    if (file.path.ends_with("/" + file.name))
      roots.try_emplace(file.package, file.path.substr(0, file.path.size() - file.name.size()));
  std::vector<SourceFile> more;
  for (const SourceFile& file : other.files) {
    const auto root = roots.find(file.package);
    if (root == roots.end() || own.contains({file.package, file.name})) continue;
    const std::string path = root->second + file.name;
    std::ifstream in(path, std::ios::binary);
    if (!in) continue;
    std::ostringstream text;
    text << in.rdbuf();
    more.push_back(make_source(file.package, file.name, path, text.str()));
  }
  std::move(more.begin(), more.end(), std::back_inserter(sources.files));
}

}  // namespace

std::vector<std::string> read_files(const std::string& traces) {
  std::vector<std::string> paths;
  std::error_code error;
  for (fs::directory_iterator it(traces, error), end; !error && it != end; it.increment(error)) {
    const std::string name = it->path().filename().string();
    if (!name.starts_with("read-")) continue;
    std::ifstream file(it->path());
    for (std::string line; std::getline(file, line);) paths.push_back(line);
  }
  std::sort(paths.begin(), paths.end());
  paths.erase(std::unique(paths.begin(), paths.end()), paths.end());
  return paths;
}

std::shared_ptr<const ProgramTexts> texts_of(SideTexts a, SideTexts b) {
  auto texts = std::make_shared<ProgramTexts>();
  texts->texts = differing_texts(a, b);
  texts->sources[0] = std::move(a.sources);
  texts->sources[1] = std::move(b.sources);
  return texts;
}

FindBackgrounds backgrounds_of(std::shared_ptr<const ProgramTexts> texts) {
  return [texts](const Run& run_a, const Run& run_b, const Alignment& alignment,
                 const Verdict& verdict) {
    return find_backgrounds(*texts, run_a, run_b, alignment, verdict);
  };
}

FindBackgrounds backgrounds_of_logs() {
  return [](const Run& a, const Run& b, const Alignment& alignment, const Verdict& verdict) {
    ProgramTexts texts;
    texts.sources[0] = sources_of(a);
    texts.sources[1] = sources_of(b);
    const Run* runs[2] = {&a, &b};
    for (int side : {0, 1})
      add_untouched(*runs[side], texts.sources[1 - side], texts.sources[side]);
    if (texts.sources[0].files.empty() || texts.sources[1].files.empty())
      return std::vector<Background>();
    return find_backgrounds(texts, a, b, alignment, verdict);
  };
}

}  // namespace opguard
