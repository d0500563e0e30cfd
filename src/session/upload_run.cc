// Two questions to one helper: is it ready, and is it done. In between it works by itself, on what
// the log's thread leaves in the folder. begin() waits for the first answer, so a store that cannot
// be written to is an error before the program starts.
#include "session/upload_run.h"

#include "session/helper_answer.h"
#include "session/remote_logs.h"
#include "support/diagnostics.h"
#include "support/package_script.h"
#include "support/say.h"
#include "support/text.h"
#include "support/url.h"

namespace opguard {
namespace {

constexpr const char* kUpload = R"(
from opguard import upload_logs
upload_logs.serve(*sys.argv[1:])
)";

}  // namespace

llvm::Expected<std::unique_ptr<UploadedRun>> UploadedRun::begin(const std::string& log,
                                                                const std::string& url,
                                                                const std::string& python) {
  auto helper = Conversation::begin(package_command(python, kUpload, {log, url}));
  if (!helper) return helper.takeError();
  if (auto ready = read_answer((*helper)->listen()); !ready) return ready.takeError();
  return std::unique_ptr<UploadedRun>(new UploadedRun(url_name(url), std::move(*helper)));
}

llvm::Error UploadedRun::finish() {
  auto moved = read_answer(helper_->ask("finish"));
  if (!moved)
    return make_error("not all of the logs were uploaded; what is missing there is still here: " +
                      llvm::toString(moved.takeError()));
  say("uploaded " + byte_amount(moved->bytes) + " in " + counted(moved->files, "file") + " to " +
      url_);
  return llvm::Error::success();
}

}  // namespace opguard
