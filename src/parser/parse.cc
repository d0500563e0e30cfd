#include "parser/parse.h"

#include <iterator>
#include <utility>

#include "parser/import_line.h"
#include "parser/probe_text.h"
#include "parser/probes.h"
#include "parser/tree.h"
#include "parser/walker.h"
#include "support/parallel.h"

namespace opguard {

std::vector<Site> parse_sites(const SourceFile& source, Diagnostics& diags) {
  if (source.text.find(kImportMark) != std::string::npos) {
    std::optional<SourceFile> plain = without_probes(source, diags);
    if (!plain) return {};
    // Equal where the mark stands in a string: the file carries no probes, and is read as it is.
    if (plain->text != source.text) return parse_sites(*plain, diags);
  }
  std::optional<Tree> tree = parse_tree(source, diags);
  if (!tree) return {};
  return Walker(source, *tree).run();
}

std::vector<Site> parse_sites(const SourceFile& source, const Words& words,
                              const ChooseScopes& choose, Diagnostics& diags) {
  if (source.text.find(kImportMark) != std::string::npos) {
    std::optional<SourceFile> plain = without_probes(source, diags);
    if (!plain) return {};
    if (plain->text != source.text) return parse_sites(*plain, words, choose, diags);
  }
  std::optional<Tree> tree = parse_tree(source, diags);
  if (!tree) return {};
  ScopeNames wanted = choose(outlines(*tree, source.text, words));
  if (wanted.empty()) return {};
  return Walker(source, *tree, &wanted).run();
}

void check_syntax(const SourceFile& source, Diagnostics& diags) {
  // Probes are taken out before a file is read.
  if (source.text.find(kImportMark) != std::string::npos)
    parse_sites(source, diags);
  else
    is_python(source, diags);
}

std::vector<Site> parse_sites(const SourceSet& sources, Diagnostics& diags) {
  std::vector<std::vector<Site>> sites(sources.files.size());
  std::vector<Diagnostics> found(sources.files.size());
  // Each file has diagnostics of its own: they are added in the order of the files, whoever is done
  // first.
  parallel_for(sites.size(), [&](size_t i) { sites[i] = parse_sites(sources.files[i], found[i]); });
  size_t count = 0;
  for (const std::vector<Site>& each : sites) count += each.size();
  std::vector<Site> all;
  all.reserve(count);
  for (size_t i = 0; i < sites.size(); ++i) {
    for (const Diagnostic& item : found[i].items()) diags.add(item);
    std::move(sites[i].begin(), sites[i].end(), std::back_inserter(all));
    sites[i] = {};
  }
  return all;
}

}  // namespace opguard
