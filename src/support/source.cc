// Reads the Python files below the roots, and counts lines and columns as CPython does.
//
//   "a\r\nb\rc\fd"        three lines: \r\n, \r and \n end one, a form feed does not
//   a byte that is no UTF-8   one character here, two bytes to CPython, which has decoded Latin-1
//   a long line           a mark every 1,024 bytes, so that a column is counted from the last one
//   a BOM                 no character of the first line
//
// Counterexample: a link to a file of the same tree names a file that is read anyway. Followed, its
// sites would be there twice, under two names.
//
// A package in an environment below the tree is the package's, not the tree's: the innermost root
// owns a file. What cannot be read is listed with the reason, and the rest is read.
#include "support/source.h"

#include <algorithm>
#include <set>
#include <tuple>

#include "llvm/Support/ConvertUTF.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "support/diagnostics.h"

namespace opguard {
namespace {

namespace fs = llvm::sys::fs;
namespace path = llvm::sys::path;

constexpr std::string_view kBom = "\xef\xbb\xbf";

// Bytes of the character that starts at text[i]. It is 1 for a byte that begins no valid UTF-8
// sequence, so that every byte of a Latin-1 file is one character.
size_t char_size(std::string_view text, size_t i) {
  const auto* p = reinterpret_cast<const llvm::UTF8*>(text.data() + i);
  unsigned size = llvm::getNumBytesForUTF8(*p);
  if (size > text.size() - i || !llvm::isLegalUTF8Sequence(p, p + size)) return 1;
  return size;
}

// CPython's tokenizer: "\n", "\r\n" and a lone "\r" end a line; a form feed does not.
std::vector<uint32_t> find_line_starts(std::string_view text) {
  std::vector<uint32_t> starts = {0};
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\r' && i + 1 < text.size() && text[i + 1] == '\n') continue;
    if (text[i] == '\n' || text[i] == '\r') starts.push_back(static_cast<uint32_t>(i + 1));
  }
  return starts;
}

// Where the characters of a line begin: after the byte order mark on the first.
uint32_t line_begin(const SourceFile& source, uint32_t line) {
  if (line == 1 && source.text.compare(0, kBom.size(), kBom) == 0) return kBom.size();
  return source.line_starts[line - 1];
}

bool has_suffix(llvm::StringRef name, llvm::StringRef suffix) {
  return name.size() > suffix.size() && name.ends_with(suffix);
}

void mark_columns(SourceFile& file) {
  constexpr size_t kLong = 2048, kApart = 1024;  // bytes
  const std::string_view all(file.text);
  for (uint32_t line = 1; line <= file.line_starts.size(); ++line) {
    const size_t begin = line_begin(file, line);
    const size_t end = line < file.line_starts.size() ? file.line_starts[line] : all.size();
    if (end - begin < kLong) continue;
    uint32_t column = 0;
    size_t next = begin + kApart;
    for (size_t i = begin; i < end; i += char_size(all, i), ++column) {
      if (i < next) continue;
      file.column_marks.push_back({static_cast<uint32_t>(i), column});
      next = i + kApart;
    }
  }
}

// Folders that hold no source of the user: caches, version control, environments.
bool skipped_folder(const std::string& dir, llvm::StringRef name) {
  if (name == "__pycache__" || name == ".git" || name == ".hg" || name == ".svn" || name == kStoreFolder ||
      name == "node_modules" || name == "site-packages" || name == "dist-packages" ||
      name == ".tox" || name == ".nox" || name == ".mypy_cache" || name == ".pytest_cache")
    return true;
  llvm::SmallString<256> marker(dir);
  path::append(marker, "pyvenv.cfg");
  return fs::exists(marker);
}

std::string absolute(llvm::StringRef name) {
  llvm::SmallString<256> result(name);
  fs::make_absolute(result);
  path::remove_dots(result, /*remove_dot_dot=*/true);
  return result.str().str();
}

// `file` relative to `dir`, or nothing when it is not below it.
std::string relative_to(llvm::StringRef file, llvm::StringRef dir) {
  while (dir.size() > 1 && dir.ends_with("/")) dir = dir.drop_back();
  if (!file.starts_with(dir)) return "";
  llvm::StringRef rest = file.drop_front(dir.size());
  if (dir != "/" && !rest.consume_front("/")) return "";
  return rest.str();
}

std::string top_folder(const SourceRoot& root) {
  llvm::SmallString<256> top(root.dir);
  if (!root.subdir.empty()) path::append(top, root.subdir);
  return absolute(top);
}

// The file of a package that is a single module: "six.py", also where it is told as "six". "" where
// there is none.
std::string module_file(const SourceRoot& root, const std::string& top) {
  if (root.subdir.empty()) return "";
  const std::string file = llvm::StringRef(top).ends_with(".py") ? top : top + ".py";
  return fs::is_regular_file(file) ? file : "";
}

// Into set.files, or into set.unread.
void read_file(const SourceRoot& root, const std::string& file, SourceSet& set) {
  auto buffer = llvm::MemoryBuffer::getFile(file, /*IsText=*/false,
                                            /*RequiresNullTerminator=*/false);
  if (!buffer)
    set.unread.push_back({root.package, file, buffer.getError().message()});
  else if ((*buffer)->getBufferSize() > UINT32_MAX / 2)
    set.unread.push_back({root.package, file, "larger than 2 GiB"});
  else
    set.files.push_back(make_source(root.package, relative_to(file, absolute(root.dir)), file,
                                    (*buffer)->getBuffer().str()));
}

void walk(const SourceRoot& root, const std::string& top, const std::string& dir, SourceSet& set) {
  std::error_code error;
  for (fs::directory_iterator it(dir, error, /*follow_symlinks=*/false), end; it != end && !error;
       it.increment(error)) {
    std::string entry = it->path();
    llvm::StringRef name = path::filename(entry);
    fs::file_type type = it->type();
    if (type == fs::file_type::directory_file) {
      if (skipped_folder(entry, name)) continue;
      walk(root, top, entry, set);
      continue;
    }
    if (!has_suffix(name, ".py")) continue;
    if (type == fs::file_type::symlink_file) {
      // A link into the tree names a file that is read anyway; one to nowhere is no source.
      llvm::SmallString<256> target, real_top;
      if (fs::real_path(entry, target) || fs::real_path(top, real_top)) continue;
      if (!relative_to(target, real_top).empty() || !fs::is_regular_file(target)) continue;
    } else if (type != fs::file_type::regular_file) {
      continue;
    }
    read_file(root, entry, set);
  }
  if (error) set.unread.push_back({root.package, dir, error.message()});
}

auto key(const SourceFile& file) { return std::tie(file.package, file.name); }

void sort_files(SourceSet& set) {
  std::sort(set.files.begin(), set.files.end(),
            [](const SourceFile& a, const SourceFile& b) { return key(a) < key(b); });
}

}  // namespace

std::string expression_line(std::string_view text) {
  std::string line;
  for (char c : text) {
    const bool space = c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\\';
    if (!space) line += c;
    if (space && !line.empty() && line.back() != ' ') line += ' ';
  }
  return line;
}

uint32_t SourceFile::line_of(uint32_t offset) const {
  auto it = std::upper_bound(line_starts.begin(), line_starts.end(), offset);
  return static_cast<uint32_t>(it - line_starts.begin());
}

uint32_t SourceFile::column_of(uint32_t offset) const {
  std::string_view all(text);
  uint32_t end = std::min<uint32_t>(offset, text.size()), column = 0;
  size_t i = line_begin(*this, line_of(end));
  auto mark = std::upper_bound(column_marks.begin(), column_marks.end(), end,
                               [](uint32_t at, const ColumnMark& m) { return at < m.offset; });
  if (mark != column_marks.begin() && (--mark)->offset > i) {
    i = mark->offset;
    column = mark->column;
  }
  for (; i < end; i += char_size(all, i)) ++column;
  return column;
}

uint32_t SourceFile::offset_of(uint32_t line, uint32_t byte_column) const {
  if (line == 0) return 0;
  if (line > line_starts.size()) return text.size();
  uint32_t begin = line_begin(*this, line);
  std::string_view all = line_text(line);
  // CPython counts the bytes of the line as it decoded it: one of Latin-1's upper half is two
  // there.
  uint32_t counted = 0, i = 0;
  while (i < all.size() && counted < byte_column) {
    uint32_t size = char_size(all, i);
    bool recoded = size == 1 && static_cast<unsigned char>(all[i]) >= 0x80;
    counted += recoded ? 2 : size;
    i += size;
  }
  return begin + i;
}

std::string_view SourceFile::line_text(uint32_t line) const {
  if (line == 0 || line > line_starts.size()) return {};
  uint32_t begin = line_begin(*this, line);
  uint32_t end = line < line_starts.size() ? line_starts[line] : text.size();
  while (end > begin && (text[end - 1] == '\n' || text[end - 1] == '\r')) --end;
  return std::string_view(text).substr(begin, end - begin);
}

const SourceFile* SourceSet::find(std::string_view package, std::string_view name) const {
  auto wanted = std::tie(package, name);
  auto it = std::lower_bound(
      files.begin(), files.end(), wanted, [](const SourceFile& file, const auto& k) {
        return std::tuple<std::string_view, std::string_view>(file.package, file.name) < k;
      });
  if (it == files.end() || it->package != package || it->name != name) return nullptr;
  return &*it;
}

SourceFile make_source(std::string package, std::string name, std::string path, std::string text) {
  SourceFile file{std::move(package), std::move(name), std::move(path), std::move(text), {}, {}};
  file.line_starts = find_line_starts(file.text);
  mark_columns(file);
  return file;
}

llvm::Expected<SourceSet> read_sources(const std::vector<SourceRoot>& roots) {
  SourceSet set{roots, {}, {}};
  for (const SourceRoot& root : roots) {
    std::string top = top_folder(root);
    size_t before = set.files.size();
    if (fs::is_directory(top)) {
      walk(root, top, top, set);
    } else if (const std::string module = module_file(root, top); !module.empty()) {
      read_file(root, module, set);
    } else {
      return make_error(fs::exists(top) ? top + " is not a folder" : "no such folder: " + top);
    }
    if (set.files.size() == before && !set.unread.empty())
      return make_error("cannot read " + set.unread.back().path + ": " + set.unread.back().why);
    if (set.files.size() == before) return make_error("no Python file in " + top);
  }
  sort_files(set);
  return set;
}

llvm::Expected<SourceSet> read_sources(const std::vector<SourceRoot>& roots,
                                       const std::vector<std::string>& paths) {
  SourceSet set{roots, {}, {}};
  std::set<std::string> seen;
  std::vector<std::string> tops, modules;  // of each root
  for (const SourceRoot& root : roots) {
    tops.push_back(top_folder(root));
    modules.push_back(module_file(root, tops.back()));
  }
  for (const std::string& name : paths) {
    std::string file = absolute(name);
    // The innermost root owns a file: a package may lie in an environment below the tree.
    const SourceRoot* owner = nullptr;
    size_t owner_size = 0;
    for (size_t i = 0; i < roots.size(); ++i) {
      const bool inside = !relative_to(file, tops[i]).empty() || file == modules[i];
      if (!inside || (owner && tops[i].size() <= owner_size)) continue;
      owner = &roots[i];
      owner_size = tops[i].size();
    }
    if (!owner || !fs::is_regular_file(file) || !seen.insert(file).second) continue;
    read_file(*owner, file, set);
  }
  sort_files(set);
  return set;
}

Diagnostic diagnostic_at(const SourceFile& source, uint32_t offset, uint32_t length,
                         std::string message) {
  Diagnostic d;
  d.file = source.path.empty() ? source.name : source.path;
  d.line = source.line_of(offset);
  d.column = source.column_of(offset);
  d.length = length;
  d.message = std::move(message);
  d.line_text = std::string(source.line_text(d.line));
  return d;
}

}  // namespace opguard
