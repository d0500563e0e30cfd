// A tracer's file of any bytes.
#include "fuzz/fuzz.h"
#include "plan/trace.h"

using namespace opguard;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const InputFile file("trace-0-1.json");
  file.write(text_of(data, size));
  llvm::Expected<Trace> trace = read_traces(file.dir());
  if (trace)
    dump(*trace);
  else
    require(!llvm::toString(trace.takeError()).empty(), "a refusal says why");
  return 0;
}
