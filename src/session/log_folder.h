// session/log_folder.h: a folder that is held while a program runs which may delete or move it.
//
//   const LogFolder folder("/w/run_a");
//   launch(program);       // its script begins with `rm -rf run_*`
//   folder.now();          // nothing: what was recorded is gone, and the user is told
//
// Counterexample: to look by the name alone. A script that makes the folder anew would pass an
// empty one for the log.
#pragma once

#include <filesystem>
#include <optional>

namespace opguard {

class LogFolder {
 public:
  // path: absolute, and there.
  explicit LogFolder(const std::filesystem::path& path);
  LogFolder(const LogFolder&) = delete;
  LogFolder& operator=(const LogFolder&) = delete;
  ~LogFolder();

  // Where it lies now; nothing if it was deleted, whatever has its name since. Where it could not
  // be held, its name.
  std::optional<std::filesystem::path> now() const;

 private:
  std::filesystem::path path_;
  int folder_;
};

}  // namespace opguard
