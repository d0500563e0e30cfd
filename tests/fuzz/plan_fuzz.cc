// A plan of any bytes.
#include "fuzz/fuzz.h"
#include "plan/plan.h"

using namespace opguard;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const InputFile file("plan.json");
  file.write(text_of(data, size));
  Diagnostics diags;
  llvm::Expected<Plan> plan = read_plan(file.path(), diags);
  if (plan)
    dump(*plan);
  else
    require(!llvm::toString(plan.takeError()).empty() || diags.has_errors(), "a refusal says why");
  diags.text();
  return 0;
}
