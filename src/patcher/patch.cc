// Edits of one file: openings from the outside in, closings from the inside out.
//
//   f(a + b)        two sites, f(...) with operand f and `+` with operand a
//   edits           at f: `og("m.f:1", `   behind f: `)`   at a: `og("m.add:2", `   behind a: `)`
//   together        og("m.f:1", f)(og("m.add:2", a) + b)
//
// The depth of a site is its place among those sorted by start, the longer first. An opening bears
// it, a closing its negative, so apply_edits() needs no look at the text to put both in order.
//
// What is written was taken out again first. The probes are stripped from the new text, and the
// result must be the old one byte by byte. Counterexample: `a < b < c` with a probe at b alone. It
// would be read as one at the second comparison's left side, so the boundary is told and left out.
//
// Old probes are taken out before new ones go in. So a second run with the same plan changes
// nothing.
#include "patcher/patch.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "parser/import_line.h"
#include "parser/probe_text.h"
#include "parser/probes.h"
#include "patcher/comments.h"

namespace opguard {
namespace {

using FileKey = std::pair<std::string, std::string>;  // package, name

llvm::Error at_site(const Wrap& wrap, const std::string& message) {
  return make_error(wrap.site.file + ":" + std::to_string(wrap.site.line) + ": boundary " +
                    wrap.boundary + ": " + message);
}

bool valid_id(const std::string& id) {
  return !id.empty() && std::none_of(id.begin(), id.end(), [](char c) {
    return c == '"' || c == '\\' || static_cast<unsigned char>(c) < 0x20;
  });
}

// Operator and value of `x += value`, between which only blanks and continued lines can lie.
// Nothing where the target is an attribute or subscript of the operand.
struct AugmentParts {
  uint32_t op, value;
};
std::optional<AugmentParts> augment_parts(const std::string& text, const Site& site) {
  auto skip_blanks = [&](uint32_t i) {
    while (i < site.end && (text[i] == ' ' || text[i] == '\t' || text[i] == '\f' ||
                            text[i] == '\\' || text[i] == '\r' || text[i] == '\n'))
      ++i;
    return i;
  };
  uint32_t op = skip_blanks(site.operand_end);
  if (text.compare(op, site.callee.size(), site.callee) != 0) return std::nullopt;
  return AugmentParts{op, skip_blanks(op + site.callee.size())};
}

// The innermost f-string around it decides: ranges come outer before inner.
char quote_at(const ImportPlace& place, uint32_t offset) {
  char quote = '"';
  for (const QuotedRange& range : place.quoted)
    if (range.start <= offset && offset < range.end) quote = range.quote;
  return quote;
}

// The operand of a chained comparison stands on two sides of it. It is taken for the left one where
// all before it in the chain carry probes, too.
std::vector<Wrap> without_broken_chains(std::vector<Wrap> wraps, Diagnostics& diags) {
  auto link = [](const Site& site) {
    constexpr std::string_view kChain = "chain:";
    bool chained = site.form == Form::compare && !site.arguments.empty() &&
                   site.arguments.back().compare(0, kChain.size(), kChain) == 0;
    return chained ? std::stoi(site.arguments.back().substr(kChain.size())) : -1;
  };
  std::map<std::pair<uint32_t, uint32_t>, std::set<int>> chains;
  for (const Wrap& wrap : wraps)
    if (int k = link(wrap.site); k >= 0) chains[{wrap.site.start, wrap.site.end}].insert(k);
  std::vector<Wrap> kept;
  for (Wrap& wrap : wraps) {
    int k = link(wrap.site);
    bool whole = true;
    for (int before = 0; before < k; ++before)
      whole = whole && chains[{wrap.site.start, wrap.site.end}].contains(before);
    if (whole) {
      kept.push_back(std::move(wrap));
      continue;
    }
    Diagnostic note;
    note.severity = Severity::note;
    note.file = wrap.site.file;
    note.line = wrap.site.line;
    note.column = wrap.site.column;
    note.message = wrap.boundary + " is not wrapped: a comparison before it in its chain is not";
    diags.add(std::move(note));
  }
  return kept;
}

// The edits of one wrap; `depth` grows from outer to inner.
llvm::Error add_edits(const std::string& text, const Wrap& wrap, const ImportPlace& place,
                      int32_t depth, std::vector<Edit>& edits) {
  const std::string& og = place.name;
  const Site& site = wrap.site;
  bool inside = site.start <= site.operand_start && site.operand_start < site.operand_end &&
                site.operand_end <= site.end && site.end <= text.size();
  if (!inside) return at_site(wrap, "its site is not of this text");
  if (!valid_id(wrap.boundary)) return at_site(wrap, "an id may hold no quote or backslash");
  char quote = quote_at(place, site.operand_start);
  std::string opening = "(" + (quote + wrap.boundary + quote) + ", ";
  if (site.form != Form::augment) {
    edits.push_back({site.operand_start, 0, og + wrap.variant + opening, depth});
    edits.push_back({site.operand_end, 0, ")", -depth});
    return llvm::Error::success();
  }
  std::optional<AugmentParts> parts = augment_parts(text, site);
  if (!parts) {
    if (wrap.variant == ".step" || wrap.variant == ".micro_batch")
      return at_site(wrap, "an augmented attribute or item can end no step");
    edits.push_back({site.operand_start, 0, og + ".aug" + opening, depth});
    edits.push_back({site.operand_end, 0, ")", -depth});
    return llvm::Error::success();
  }
  std::string_view method = augment_method(site.callee);
  if (method.empty()) return at_site(wrap, "its site is not of this text");
  std::string name = text.substr(site.operand_start, site.operand_end - site.operand_start);
  // `x += y`: the name stays a target, the operator becomes `=`, the blanks around it stay.
  edits.push_back({parts->op, static_cast<uint32_t>(site.callee.size()), "=", 0});
  const std::string probe =
      og + (wrap.variant.empty() ? std::string(kNameProbe) : wrap.variant) + opening + name + ").";
  edits.push_back({parts->value, 0, probe + std::string(method) + "(", depth});
  edits.push_back({site.end, 0, ")", -depth});
  return llvm::Error::success();
}

llvm::Expected<std::string> instrumented(const SourceFile& plain, std::vector<Wrap> wraps,
                                         Comments comments, Diagnostics& diags) {
  wraps = without_broken_chains(std::move(wraps), diags);
  if (wraps.empty()) return plain.text;
  std::optional<ImportPlace> place = import_place(plain, diags);
  if (!place) return make_error(plain.path + " does not parse");
  // Of two sites that start together the longer is the outer; a loop's is as long as its call.
  auto key = [](const Wrap& w) {
    return std::make_tuple(w.site.start, ~w.site.end, ~w.site.operand_end);
  };
  std::sort(wraps.begin(), wraps.end(),
            [&](const Wrap& a, const Wrap& b) { return key(a) < key(b); });
  std::string import_line = "from opguard import " + std::string(kProbeName);
  if (place->name != kProbeName) import_line += " as " + place->name;
  import_line += "  " + std::string(kImportMark);
  std::vector<Edit> edits;
  if (comments == Comments::with) edits = comment_edits(plain, wraps, *place, diags);
  if (!edits.empty()) import_line += kWithComments;
  import_line += std::string(kUnsorted) + place->newline;
  edits.push_back({place->offset, 0, import_line, kImportNesting});
  std::set<std::pair<uint32_t, uint32_t>> operands;
  int32_t depth = 0;
  for (const Wrap& wrap : wraps) {
    if (!operands.insert({wrap.site.operand_start, wrap.site.operand_end}).second)
      return at_site(wrap, "its operand already carries a probe");
    if (auto failed = add_edits(plain.text, wrap, *place, ++depth, edits)) return failed;
  }
  return apply_edits(plain.text, std::move(edits));
}

}  // namespace

llvm::Expected<Patch> make_patch(const SourceSet& sources, const std::vector<Wrap>& wraps,
                                 Diagnostics& diags, Comments comments) {
  std::map<FileKey, std::vector<Wrap>> by_file;
  for (const Wrap& wrap : wraps) {
    const SourceFile* file = sources.find(wrap.site.package, wrap.site.file);
    if (!file) return at_site(wrap, "no such file among the sources");
    if (wrap.site.refusal.empty()) by_file[{wrap.site.package, wrap.site.file}].push_back(wrap);
  }
  Patch patch;
  for (const SourceFile& file : sources.files) {
    auto wanted = by_file.find({file.package, file.name});
    bool carries = file.text.find(kImportMark) != std::string::npos;
    if (wanted == by_file.end() && !carries) continue;
    Diagnostics unread;
    std::optional<SourceFile> plain = without_probes(file, unread);
    if (!plain && wanted != by_file.end()) return make_error(file.path + " does not parse");
    for (Diagnostic item : unread.items()) {
      if (!plain) item.severity = Severity::warning;
      if (!plain) item.message += "; the file is skipped, with the probes in it";
      diags.add(std::move(item));
    }
    if (!plain) continue;
    auto after = instrumented(
        *plain, wanted == by_file.end() ? std::vector<Wrap>() : std::move(wanted->second), comments,
        diags);
    if (!after) return after.takeError();
    if (*after == file.text) continue;
    // The promise of --strip, kept before anything is written.
    std::optional<SourceFile> back =
        without_probes(make_source(file.package, file.name, file.path, *after), diags);
    if (!back || back->text != plain->text)
      return make_error(file.path + ": its probes could not be taken out again");
    patch.files.push_back({file.package, file.name, file.path, file.text, std::move(*after)});
  }
  return patch;
}

llvm::Expected<Patch> strip_patch(const SourceSet& sources, Diagnostics& diags) {
  return make_patch(sources, {}, diags);
}

}  // namespace opguard
