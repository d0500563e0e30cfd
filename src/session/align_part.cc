// What a part tells bears the names that the user gave the logs, though these may have been brought
// here from object storage. Else parts of several machines would disagree about what they compared.
#include "session/align_part.h"

#include <cstdio>
#include <filesystem>
#include <memory>
#include <utility>

#include "fleet/fleet_html.h"
#include "fleet/fleet_text.h"
#include "fleet/make_part.h"
#include "fleet/merge_parts.h"
#include "fleet/part_json.h"
#include "report/html.h"
#include "session/remote_logs.h"
#include "support/exit_code.h"
#include "support/progress.h"
#include "support/say.h"
#include "support/url.h"
#include "support/write_file.h"

namespace opguard {
namespace {

namespace fs = std::filesystem;

// A rank's own page: what align --html shows of its logs.
llvm::Error write_rank_page(const std::string& folder, const RankPart& rank,
                            const JudgedRuns& judged) {
  const Report report{*judged.a,
                      *judged.b,
                      judged.found.alignment,
                      judged.found.verdict,
                      Coverage{},
                      judged.settings.all(),
                      /*explain=*/false,
                      {},
                      {},
                      judged.hidden.get()};
  return write_file((fs::path(folder) / rank_page_name(rank)).string(), format_html(report));
}

// Of the pages in the folder those that are there, as they are linked from a page at `html`.
// html: where the map is written. Its links are relative, so that map and pages can be moved
// together.
RankPages rank_pages(const Part& all, const std::string& folder, const std::string& html) {
  RankPages pages;
  if (folder.empty()) return pages;
  std::error_code ignored;
  for (size_t i = 0; i < all.ranks.size(); ++i)
    if (fs::exists(fs::path(folder) / rank_page_name(all.ranks[i]), ignored)) pages.of.push_back(i);
  pages.folder =
      fs::absolute(folder).lexically_relative(fs::absolute(html).parent_path()).generic_string();
  return pages;
}

}  // namespace

int align_part(const PartOptions& opt) {
  const auto number = part_number(opt.part);
  if (!number) return fail("--part takes I/N, as 3/8 is: not " + opt.part);
  auto rules = read_rules(opt.report);
  if (!rules) return fail(llvm::toString(rules.takeError()));
  ShowRank show;
  if (!opt.pages.empty()) {
    std::error_code failed;
    fs::create_directories(opt.pages, failed);
    if (failed) return fail(opt.pages + ": " + failed.message());
    show = [&](const RankPart& rank, const JudgedRuns& judged) {
      return write_rank_page(opt.pages, rank, judged);
    };
  }
  auto progress = std::make_unique<Progress>("comparing part " + opt.part);
  auto remote = RemoteLogs::open({opt.dir_a, opt.dir_b}, opt.report.python);
  if (!remote) return fail(llvm::toString(remote.takeError()));
  auto part = make_part(
      (*remote)->here(opt.dir_a), (*remote)->here(opt.dir_b), number->first, number->second, *rules,
      {opt.report.read, {}, opt.report.without, {}, {}, (*remote)->bring()}, show);
  progress.reset();
  if (!part) return fail((*remote)->as_given(llvm::toString(part.takeError())));
  part->a = url_name(opt.dir_a), part->b = url_name(opt.dir_b);
  for (RankPart& rank : part->ranks) rank.why = (*remote)->as_given(rank.why);
  if ((*remote)->bring() != nullptr) say("note: " + (*remote)->told());
  const std::string text = format_part(*part);
  if (opt.out.empty())
    std::fputs(text.c_str(), stdout);
  else if (llvm::Error failed = write_file(opt.out, text))
    return fail(llvm::toString(std::move(failed)));
  return kYes;
}

int merge_part_files(const PartOptions& opt) {
  std::vector<Part> parts;
  for (const std::string& path : opt.merge) {
    auto part = read_part(path);
    if (!part) return fail(llvm::toString(part.takeError()));
    parts.push_back(std::move(*part));
  }
  auto all = merge_parts(std::move(parts));
  if (!all) return fail("--merge: " + llvm::toString(all.takeError()));
  if (!opt.out.empty())
    if (llvm::Error failed = write_file(opt.out, format_part(*all)))
      return fail(llvm::toString(std::move(failed)));
  const FleetVerdict verdict = judge_parts(*all);
  std::fputs(format_fleet(*all, verdict).c_str(), stdout);
  if (!opt.report.json.empty())
    if (llvm::Error failed = write_file(opt.report.json, format_fleet_json(*all, verdict)))
      return fail(llvm::toString(std::move(failed)));
  if (!opt.report.html.empty())
    if (llvm::Error failed = write_file(
            opt.report.html,
            format_fleet_html(*all, verdict, rank_pages(*all, opt.pages, opt.report.html))))
      return fail(llvm::toString(std::move(failed)));
  switch (verdict.outcome) {
    case Outcome::identical:
      return kYes;
    case Outcome::diverged:
      return kNo;
    default:
      return kCouldNotTell;
  }
}

}  // namespace opguard
