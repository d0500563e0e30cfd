// A Python file of any bytes: parsed, every site wrapped, stripped again to the byte.
#include "fuzz/fuzz.h"
#include "parser/parse.h"
#include "parser/probes.h"
#include "patcher/patch.h"

using namespace opguard;

namespace {

SourceSet set_of(std::string text) {
  SourceSet sources;
  sources.files.push_back(make_source("", "a.py", "/t/a.py", std::move(text)));
  return sources;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const SourceSet sources = set_of(std::string(text_of(data, size)));
  Diagnostics diags;
  const std::vector<Site> sites = parse_sites(sources, diags);
  std::vector<Wrap> wraps;
  for (const Site& site : sites) {
    require(site.start <= site.end && site.end <= size, "a site is in the text");
    if (site.refusal.empty()) wraps.push_back({"a.op:q" + std::to_string(wraps.size()), site});
  }
  llvm::Expected<Patch> patch =
      make_patch(sources, wraps, diags, size % 2 == 0 ? Comments::without : Comments::with);
  if (!patch) {
    llvm::consumeError(patch.takeError());
    return 0;
  }
  format_diff(*patch);
  if (patch->files.empty()) return 0;
  require(patch->files.size() == 1 && patch->files[0].before == sources.files[0].text,
          "the patch is made from the text");
  Diagnostics again;
  llvm::Expected<Patch> strip = strip_patch(set_of(patch->files[0].after), again);
  if (!strip) {
    llvm::consumeError(strip.takeError());
    require(false, "what was patched can be stripped");
  }
  // A text with probes of its own is stripped of them too.
  Diagnostics unused;
  std::optional<SourceFile> bare = without_probes(sources.files[0], unused);
  if (!bare) return 0;
  const std::string& stripped =
      strip->files.empty() ? patch->files[0].after : strip->files[0].after;
  require(stripped == bare->text, "strip(apply(text)) = text");
  return 0;
}
