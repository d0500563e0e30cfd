#include "session/look_alikes.h"

#include <algorithm>

#include "matcher/elsewhere.h"
#include "matcher/search.h"
#include "parser/parse.h"
#include "support/parallel.h"

namespace opguard {

std::vector<uint32_t> look_alikes(const SourceSet& sources, const Plan& plan) {
  const Search search = Search::everywhere(plan);
  std::vector<std::vector<uint32_t>> found(sources.files.size());
  parallel_for(found.size(), [&](size_t i) {
    const SourceFile& file = sources.files[i];
    auto choose = [&](const std::vector<Outline>& outlines) {
      return search.choose(outlines, file.package, file.name);
    };
    Diagnostics unparsed;
    found[i] = keys_elsewhere(search.keep(parse_sites(file, search.words(), choose, unparsed)),
                              plan, search);
  });
  std::vector<uint32_t> keys;
  for (const std::vector<uint32_t>& each : found) keys.insert(keys.end(), each.begin(), each.end());
  std::sort(keys.begin(), keys.end());
  keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
  return keys;
}

}  // namespace opguard
