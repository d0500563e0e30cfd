// An operator template of any bytes.
#include "fuzz/fuzz.h"
#include "matcher/template.h"

using namespace opguard;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const InputFile file("activation.json");
  file.write(text_of(data, size));
  Diagnostics diags;
  llvm::Expected<TemplateLibrary> library = read_templates(file.dir(), diags);
  if (!library) llvm::consumeError(library.takeError());
  diags.text();
  return 0;
}
