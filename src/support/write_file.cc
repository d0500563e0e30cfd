#include "support/write_file.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <system_error>

#include "llvm/ADT/SmallString.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/raw_ostream.h"
#include "support/diagnostics.h"

namespace opguard {
namespace {

namespace fs = llvm::sys::fs;

llvm::Error cannot_write(const std::string& path, std::error_code why) {
  return make_error("cannot write " + path + ": " + why.message());
}

// Closes the descriptor. What went wrong, if anything did.
std::error_code write_all(int descriptor, std::string_view text) {
  llvm::raw_fd_ostream out(descriptor, /*shouldClose=*/true, /*unbuffered=*/true);
  out << llvm::StringRef(text.data(), text.size());
  out.close();
  const std::error_code failed = out.error();
  out.clear_error();  // or its destructor ends the process
  return failed;
}

// As an ordinary new file would have them.
fs::perms usual_permissions() {
  const mode_t mask = umask(0);
  umask(mask);
  return static_cast<fs::perms>(0666 & ~mask);
}

void (*g_signal_before)(int) = SIG_DFL;

}  // namespace

llvm::Expected<std::string> write_beside(const std::string& target, std::string_view text) {
  fs::file_status status;
  const bool there = !fs::status(target, status);
  int descriptor = -1;
  llvm::SmallString<256> name;
  if (auto failed = fs::createUniqueFile(target + ".opguard-%%%%%%", descriptor, name))
    return cannot_write(target, failed);
  std::error_code failed = write_all(descriptor, text);
  if (!failed)
    failed = fs::setPermissions(name, there ? status.permissions() : usual_permissions());
  if (!failed) return name.str().str();
  fs::remove(name);
  return cannot_write(target, failed);
}

llvm::Error write_file(const std::string& path, std::string_view text) {
  fs::file_status status;
  llvm::SmallString<256> target(path);
  if (!fs::status(path, status)) {
    if (fs::is_directory(status))
      return cannot_write(path, std::make_error_code(std::errc::is_a_directory));
    if (!fs::is_regular_file(status)) {
      int descriptor = -1;
      std::error_code failed =
          fs::openFileForWrite(path, descriptor, fs::CD_OpenExisting, fs::OF_None);
      if (!failed) failed = write_all(descriptor, text);
      return failed ? cannot_write(path, failed) : llvm::Error::success();
    }
    if (auto failed = fs::real_path(path, target)) return cannot_write(path, failed);
  }
  llvm::Expected<std::string> beside = write_beside(target.str().str(), text);
  if (!beside) return beside.takeError();
  const std::error_code failed = fs::rename(*beside, target);
  if (!failed) return llvm::Error::success();
  fs::remove(*beside);
  return cannot_write(path, failed);
}

void fail_at_file_size_limit() { g_signal_before = ::signal(SIGXFSZ, SIG_IGN); }

void restore_file_size_signal() { ::signal(SIGXFSZ, g_signal_before); }

}  // namespace opguard
