// A file is parsed only if it has the words of the import line (kImportMark). Without that line no
// probe can run, so nothing else is looked for.
//
// A file that has the words and cannot be parsed counts as one that carries probes. It may be torn
// amid a merge, and a hook had better say one thing too much. Counterexample: the words in a
// string. Parsed, the file has no such import, and carries none.
#include "session/check_stripped.h"

#include <filesystem>
#include <system_error>

#include "llvm/Support/MemoryBuffer.h"
#include "parser/probe_text.h"
#include "parser/probes.h"
#include "support/diagnostics.h"
#include "support/exit_code.h"
#include "support/say.h"
#include "support/source.h"
#include "support/text.h"

namespace opguard {
namespace {

struct Carried {
  size_t files = 0, unread = 0;
};

// As compilers say it, so that editors find the place: path:line:column, both from 1.
void tell_file(const SourceFile& file, uint32_t offset, const std::string& what) {
  print_lines(shown(file.name + ":" + std::to_string(file.line_of(offset)) + ":" +
                    std::to_string(file.column_of(offset) + 1) + ": error: " + what) +
              "\n");
}

void look_at(const SourceFile& file, Carried& found) {
  const size_t mark = file.text.find(kImportMark);
  if (mark == std::string::npos) return;
  Diagnostics diags;
  Probe::Range import{};
  const std::vector<Probe> probes = parse_probes(file, import, diags);
  if (diags.has_errors()) {
    // A file that was torn in the middle of a merge, say.
    tell_file(file, static_cast<uint32_t>(mark),
         "the import line of probes, in a file that cannot be parsed");
    ++found.files;
    return;
  }
  if (import.end == import.start) return;
  ++found.files;
  tell_file(file, import.start, "the import line of probes");
  for (const Probe& probe : probes)
    if (!probe.undo.empty()) tell_file(file, probe.undo.front().start, "a probe: " + probe.boundary);
}

void complain(const std::string& path, const std::string& why, Carried& found) {
  print_diagnostics(shown(path + ": error: it cannot be read: " + why) + "\n");
  ++found.unread;
}

void look_at_file(const std::string& path, Carried& found) {
  // A name in the index whose file is gone is no file of the commit.
  auto buffer = llvm::MemoryBuffer::getFile(path, /*IsText=*/false,
                                            /*RequiresNullTerminator=*/false);
  if (!buffer) return complain(path, buffer.getError().message(), found);
  look_at(make_source("", path, path, (*buffer)->getBuffer().str()), found);
}

// Names are shown as the hook would give them: below the path that was given.
void look_at_folder(const std::string& path, Carried& found) {
  std::error_code error;
  const std::string folder = std::filesystem::canonical(path, error).string();
  auto sources = read_sources({{"", folder, ""}});
  if (!sources) return complain(path, first_line(sources.takeError()), found);
  for (const UnreadPath& unread : sources->unread) complain(unread.path, unread.why, found);
  for (SourceFile& file : sources->files) {
    if (path != ".") file.name = path + (path.ends_with('/') ? "" : "/") + file.name;
    look_at(file, found);
  }
}

}  // namespace

int check_stripped(const std::vector<std::string>& paths) {
  Carried found;
  for (const std::string& path : paths.empty() ? std::vector<std::string>{"."} : paths) {
    std::error_code error;
    if (std::filesystem::is_directory(path, error))
      look_at_folder(path, found);
    else
      look_at_file(path, found);
  }
  if (found.files > 0)
    say(counted(found.files, "file") + (found.files == 1 ? " carries" : " carry") +
        " probes: opguard-instrument TREE --strip --apply takes them out");
  if (found.files > 0) return kNo;
  return found.unread > 0 ? kCouldNotTell : kYes;
}

}  // namespace opguard
