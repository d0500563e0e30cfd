// support/write_file.h: every file of ours that a person or a program reads is whole or not there.
//
//   opguard align a b --json verdict.json
//
// The text goes to `verdict.json.opguard-1a2b3c` first, which is then renamed. A disk that is full
// leaves the earlier verdict.json as it was, and nothing beside it. What is no regular file (a
// terminal, /dev/stdout, a pipe) is written as it is. A link is followed.
#pragma once

#include <string>
#include <string_view>

#include "llvm/Support/Error.h"

namespace opguard {

// A new file beside `target` that holds `text`, with the permissions of `target` if that is there
// and the process's usual ones if not. Its path; the caller renames or removes it.
llvm::Expected<std::string> write_beside(const std::string& target, std::string_view text);

// The error says "cannot write PATH: why", for instance "File too large" or "No space left on
// device".
llvm::Error write_file(const std::string& path, std::string_view text);

// What goes beyond a file size limit (`ulimit -f`) is an error of the write, as on a full disk. It
// is not the end of the process by SIGXFSZ. Called once, before anything is written.
void fail_at_file_size_limit();
// In a child, before it runs another program: SIGXFSZ is as it was. Async-signal-safe.
void restore_file_size_signal();

}  // namespace opguard
