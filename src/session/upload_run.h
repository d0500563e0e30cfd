// session/upload_run.h: the logs of a run, moved to object storage while it goes on.
//
//   opguard run --log run_a --upload s3://bucket/a --spool 4GB -- torchrun ... train.py
//
// The log's own thread writes segments to the local folder (record/log_files.h). A helper takes
// away what is whole: python/opguard/upload_logs.py. It is a process of its own, so the program
// gives neither memory nor its interpreter for it. Where the store is slower than the program,
// segments wait, up to --spool. Beyond it records are lost, counted and told.
//
// Counterexample: a store that cannot be written to. The program is not started.
// The cost: each byte is written to the local disk once, and read once.
#pragma once

#include <memory>
#include <string>

#include "llvm/Support/Error.h"
#include "support/conversation.h"

namespace opguard {

class UploadedRun {
 public:
  // log: the folder here. url: one that holds no logs of a run that has ended. python: an
  // interpreter that has pyarrow.
  static llvm::Expected<std::unique_ptr<UploadedRun>> begin(const std::string& log,
                                                            const std::string& url,
                                                            const std::string& python);
  // The program has ended, and what is left goes. Says how much it was. Error: some of it is still
  // here.
  llvm::Error finish();

 private:
  UploadedRun(std::string url, std::unique_ptr<Conversation> helper)
      : url_(std::move(url)), helper_(std::move(helper)) {}

  std::string url_;
  std::unique_ptr<Conversation> helper_;
};

}  // namespace opguard
