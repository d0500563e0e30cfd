// Four ways to know what to wrap, one way to write it:
//
//   --plan FILE       planned_sites()       the boundaries, found again in the sources
//   -- CMD            instrument_traced()   a survey first
//   --all-sites       every_site()          all that can be wrapped, s1, s2, ...
//   --strip           strip()               nothing: what is wrapped is taken out
//
// A plan that names a package of thousands of files is looked for first in the files that it names.
// Only if some boundary is not surely there is the whole package read.
#include "session/instrument.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <iterator>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "matcher/match.h"
#include "matcher/share.h"
#include "parser/parse.h"
#include "patcher/patch.h"
#include "plan/plan.h"
#include "session/leave_out.h"
#include "session/locate.h"
#include "session/packages.h"
#include "session/skipped.h"
#include "session/survey.h"
#include "session/verify.h"
#include "support/diagnostics.h"
#include "support/exit_code.h"
#include "support/install.h"
#include "support/kept_input.h"
#include "support/say.h"
#include "support/source.h"
#include "support/text.h"
#include "support/write_file.h"

namespace opguard {
namespace {

// The interpreter that has the packages of --with: the program's own, where the command tells.
std::string interpreter(const InstrumentOptions& opt) {
  if (!opt.python.empty()) return opt.python;
  std::string first = opt.command.empty() ? "" : opt.command.front();
  bool python = first.substr(first.rfind('/') + 1).starts_with("python");
  return python ? first : "python3";
}

Comments comments_of(const InstrumentOptions& opt) {
  return opt.comments ? Comments::with : Comments::without;
}

// "3 files".
std::string count_files(const Patch& patch) {
  size_t count = patch.files.size();
  return std::to_string(count) + (count == 1 ? " file" : " files");
}

// Sites that no probe can stand at (Site::refusal) are left out. Numbers count the wrapped ones.
std::vector<Wrap> wrap_all(const std::vector<Site>& sites) {
  std::vector<Wrap> wraps;
  for (const Site& site : sites)
    if (site.refusal.empty()) wraps.push_back({"s" + std::to_string(wraps.size() + 1), site});
  return wraps;
}

std::string site_place(const Site& site) {
  return site.file + ":" + std::to_string(site.line) + ":" + std::to_string(site.column + 1);
}

// The sites to wrap; what carries no probe is listed in `notes`.
std::vector<Wrap> wrap_matched(const Plan& plan, const MatchSet& matches,
                               const std::vector<Site>& sites, std::string& notes) {
  std::vector<Wrap> wraps;
  for (size_t i = 0; i < matches.matches.size(); ++i) {
    const Match& match = matches.matches[i];
    if (match.status == MatchStatus::matched) {
      const Site& site = sites[match.site];
      if (!site.refusal.empty())
        notes += shown(site_place(site) + ": note: " + match.boundary +
                       " is not wrapped: " + site.refusal) +
                 "\n";
      wraps.push_back({match.boundary, site, probe_variant(plan.boundaries[i])});
      continue;
    }
    const char* status = match.status == MatchStatus::lost ? "lost" : "ambiguous";
    notes += shown(site_place(plan.boundaries[i].site) + ": " + status + ": " + match.boundary +
                   ": " + match.why) +
             "\n";
  }
  return wraps;
}

// The tree's files, and of the packages those in which the plan has boundaries: a package may have
// thousands.
llvm::Expected<SourceSet> read_planned(const std::vector<SourceRoot>& roots, const Plan& plan) {
  if (roots.size() == 1) return read_sources(roots);
  std::vector<SourceRoot> tree;
  std::copy_if(roots.begin(), roots.end(), std::back_inserter(tree),
               [](const SourceRoot& root) { return root.package.empty(); });
  auto own = read_sources(tree);
  if (!own) return own.takeError();
  std::set<std::string> paths;
  for (const SourceFile& file : own->files) paths.insert(file.path);
  for (const SourceRoot& root : roots)
    for (const Boundary& boundary : plan.boundaries)
      if (!root.package.empty() && boundary.site.package == root.package)
        paths.insert(root.dir + "/" + boundary.site.file);
  return read_sources(roots, {paths.begin(), paths.end()});
}

// A boundary that fits less well may be elsewhere in its package.
// False has the whole package read: a file that was renamed would else be lost.
bool sure(const MatchSet& matches) {
  constexpr double kSure = 0.9;
  return std::all_of(matches.matches.begin(), matches.matches.end(), [](const Match& match) {
    return match.status == MatchStatus::matched && match.score >= kSure;
  });
}

// The patch to where the options say: nowhere (--check), the files, a commit on a branch, or
// stdout.
int write(const Patch& whole, const InstrumentOptions& opt) {
  if (opt.check) return kYes;
  std::string notes;
  Patch patch = writable_part(whole, opt.apply || !opt.branch.empty() ? opt.repo : "", notes);
  print_diagnostics(notes);
  if (opt.apply) {
    if (auto failed = apply_patch(patch)) return fail(llvm::toString(std::move(failed)));
    say(count_files(patch) + " written");
    return kYes;
  }
  if (!opt.branch.empty() && patch.files.empty()) {
    say("nothing changes, so no branch is made");
    return kYes;
  }
  if (!opt.branch.empty()) {
    if (auto failed = commit_patch(patch, opt.repo, opt.branch))
      return fail(llvm::toString(std::move(failed)));
    say(count_files(patch) + " committed on " + opt.branch);
    return kYes;
  }
  std::string diff = format_diff(patch);
  std::fwrite(diff.data(), 1, diff.size(), stdout);
  return kYes;
}

// Runs the program bare and instrumented. sources: as they are on disk; plain: without probes.
int verify_program(const InstrumentOptions& opt, const std::string& work, const SourceSet& sources,
                   const SourceSet& plain, std::vector<Wrap> wraps) {
  std::erase_if(wraps, [](const Wrap& wrap) { return !wrap.site.refusal.empty(); });
  auto tree = canonical_tree(opt.repo);
  if (!tree) return fail(llvm::toString(tree.takeError()));
  auto found = verify(
      {.command = opt.command, .tree = *tree, .work = work, .seed = opt.seed, .runs = opt.runs},
      sources, wraps);
  if (!found) return fail(llvm::toString(found.takeError()));
  print_lines(verification_text(*found, plain, wraps));
  if (!opt.json.empty())
    if (auto failed = write_file(opt.json, verification_json(*found, plain, wraps)))
      return fail(llvm::toString(std::move(failed)));
  switch (found->verdict) {
    case Verification::Verdict::equal:
      return kYes;
    case Verification::Verdict::different:
      return kNo;
    case Verification::Verdict::inconclusive:
      return kCouldNotTell;
  }
  return kCouldNotTell;
}

// No plan yet: the program is traced, and its plan's boundaries are wrapped where it ran them.
int instrument_traced(const InstrumentOptions& opt) {
  Diagnostics diags;
  auto tree = canonical_tree(opt.repo);
  if (!tree) return fail(llvm::toString(tree.takeError()));
  auto templates = find_templates(opt.templates, diags);
  if (!templates) return fail(llvm::toString(templates.takeError()));
  auto work = WorkFolder::open(opt.work);
  if (!work) return fail(llvm::toString(work.takeError()));
  auto left_out = left_out_of(*tree, opt.sources, opt.command);
  if (!left_out) return fail(llvm::toString(left_out.takeError()));
  say_left_out(*left_out, opt.sources);
  auto seen = survey({.command = opt.command,
                      .tree = *tree,
                      .packages = opt.packages,
                      .left_out = left_out->all(),
                      .steps = 0,
                      .work = work->path(),
                      .quiet = talk() == Talk::quiet},
                     *templates, diags);
  print_diagnostics(diags.text());
  if (!seen) return fail(llvm::toString(seen.takeError()));
  diags = {};
  std::vector<Wrap> wraps;
  for (const Bound& bound : bind(seen->plan))
    wraps.push_back({bound.boundary, bound.site, bound.variant});
  // What the files hold now, probes or not: the patch is against that.
  std::vector<std::string> paths;
  for (const SourceFile& file : seen->sources.files) paths.push_back(file.path);
  auto sources = read_sources(seen->sources.roots, paths);
  if (!sources) return fail(llvm::toString(sources.takeError()));
  if (opt.verify) {
    if (auto failed = write_plan(seen->plan, work->path() + "/plan.json"))
      return fail(llvm::toString(std::move(failed)));
    return verify_program(opt, work->path(), *sources, seen->sources, wraps);
  }
  auto patch = make_patch(*sources, wraps, diags, comments_of(opt));
  print_diagnostics(diags.text());
  if (!patch) return fail(llvm::toString(patch.takeError()));
  std::set<std::string> said;  // a place is listed once a phase
  for (const Unwrapped& left : seen->plan.unwrapped) {
    std::string note =
        left.file + ":" + std::to_string(left.line) + ": note: not wrapped: " + left.what + "\n";
    if (said.insert(note).second) print_diagnostics(note);
  }
  return write(*patch, opt);
}

// --strip: every probe out again.
int strip(const InstrumentOptions& opt, const SourceSet& sources) {
  Diagnostics diags;
  skip_files(sources, {}, diags);
  auto patch = strip_patch(sources, diags);
  print_diagnostics(diags.text());
  if (!patch) return fail(llvm::toString(patch.takeError()));
  const int code = write(*patch, opt);
  // Probes may be left in what was skipped.
  return code == kYes && !diags.items().empty() ? kNo : code;
}

// What is to be wrapped in these sources.
struct Wrapping {
  SourceSet sources;
  std::vector<Wrap> wraps;
  std::string notes;                     // of sites that carry no probe
  size_t boundaries = 0, unmatched = 0;  // of the plan, and of these not found
};

// --all-sites.
Wrapping every_site(SourceSet sources) {
  Diagnostics found, diags;
  Wrapping out{std::move(sources), {}, {}};
  out.wraps = wrap_all(parse_sites(out.sources, found));
  skip_files(out.sources, found, diags);
  print_diagnostics(diags.text());
  return out;
}

// --plan.
// Error: sources or templates cannot be read. A boundary that is not found is a note, and counted.
llvm::Expected<Wrapping> planned_sites(const InstrumentOptions& opt, const Plan& plan,
                                       const std::vector<SourceRoot>& roots) {
  auto sources = read_planned(roots, plan);
  if (!sources) return sources.takeError();
  leave_out(*sources, opt.sources);
  Diagnostics diags;
  auto templates = find_templates(opt.templates, diags);
  if (!templates) return templates.takeError();
  // All boundaries at once: a site taken by one is no other's.
  Located located = locate(*sources, *templates, plan, diags);
  print_diagnostics(diags.text());
  if (!sure(located.matches) && roots.size() > 1) {
    diags = {};
    sources = read_sources(roots);
    if (!sources) return sources.takeError();
    leave_out(*sources, opt.sources);
    located = locate(*sources, *templates, plan, diags);
    print_diagnostics(diags.text());
  }
  const MatchSet& matches = located.matches;
  Wrapping out{std::move(*sources), {}, {}};
  out.wraps = wrap_matched(plan, matches, located.sites, out.notes);
  out.boundaries = matches.matches.size();
  out.unmatched = out.boundaries - matches.count(MatchStatus::matched);
  return out;
}

// The exit code of --check is kNo where a boundary of the plan was not found.
int wrap(const InstrumentOptions& opt, const Wrapping& found) {
  if (opt.verify) {
    auto work = WorkFolder::open(opt.work);
    if (!work) return fail(llvm::toString(work.takeError()));
    print_diagnostics(found.notes);
    return verify_program(opt, work->path(), found.sources, found.sources, found.wraps);
  }
  Diagnostics diags;
  auto patch = make_patch(found.sources, found.wraps, diags, comments_of(opt));
  print_diagnostics(diags.text() + found.notes);
  if (!patch) return fail(llvm::toString(patch.takeError()));
  const int code = write(*patch, opt);
  if (opt.check && !opt.plan.empty())
    print_lines(std::to_string(found.boundaries) + " boundaries" + ", " +
                std::to_string(found.unmatched) + " unmatched\n");
  return code == kYes && opt.check && found.unmatched > 0 ? kNo : code;
}

// With a plan, its packages count as source too.
int instrument_planned(InstrumentOptions opt) {
  Diagnostics diags;
  auto plan = read_plan(opt.plan, diags);
  print_diagnostics(diags.text());
  if (!plan) return fail(llvm::toString(plan.takeError()));
  for (const std::string& package : plan->packages)
    if (std::find(opt.packages.begin(), opt.packages.end(), package) == opt.packages.end())
      opt.packages.push_back(package);
  auto roots = find_roots(opt.repo, opt.packages, interpreter(opt));
  if (!roots) return fail(llvm::toString(roots.takeError()));
  auto found = planned_sites(opt, *plan, *roots);
  return found ? wrap(opt, *found) : fail(llvm::toString(found.takeError()));
}

}  // namespace

// The order of the questions: --plan, then the traced program, then --strip or --all-sites.
int instrument(const InstrumentOptions& opt) {
  if (opt.verify) keep_input();
  if (opt.verify && opt.command.empty()) return fail("--verify runs the program: give it after --");
  if (!opt.json.empty()) {  // before the program's minutes are spent
    auto folder = std::filesystem::absolute(opt.json).parent_path();
    if (!std::filesystem::is_directory(folder)) return fail("no such folder: " + folder.string());
  }
  if (!opt.plan.empty()) return instrument_planned(opt);
  if (!opt.strip && !opt.all_sites) {
    if (opt.command.empty()) return fail("give a plan with --plan FILE, or the program after --");
    return instrument_traced(opt);
  }
  auto roots = find_roots(opt.repo, opt.packages, interpreter(opt));
  if (!roots) return fail(llvm::toString(roots.takeError()));
  auto sources = read_sources(*roots);
  if (!sources) return fail(llvm::toString(sources.takeError()));
  leave_out(*sources, opt.sources);
  if (!opt.strip) leave_out_unasked(*sources, opt.sources);
  return opt.strip ? strip(opt, *sources) : wrap(opt, every_site(std::move(*sources)));
}

}  // namespace opguard
