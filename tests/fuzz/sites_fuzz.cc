// A sites.json of any bytes beside a whole log.
#include "align/pair/run.h"
#include "fuzz/fuzz.h"
#include "record/writer.h"

using namespace opguard;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const InputFile file("sites.json");
  static const bool logged = [] {
    LogWriter writer;
    return writer.open(file.dir(), 0, 1, 1, 1) && writer.close();
  }();
  require(logged, "a log beside it");
  file.write(text_of(data, size));
  llvm::Expected<Run> run = load_run(file.dir());
  if (!run) require(!llvm::toString(run.takeError()).empty(), "a refusal says why");
  return 0;
}
