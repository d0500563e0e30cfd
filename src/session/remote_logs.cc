// What has been brought is known as ranges of bytes, by file. A question is cut to what is missing
// before it goes out:
//
//   have      [0, 4096)  [8192, 12288)
//   asked     [2048, 10240)
//   goes out  [4096, 8192)
//
// A question goes out as one range. So what is here amid it, and touches neither end, comes once
// more.
//
// Counterexample: a file of the other side that lies on this machine. It is not below our work
// folder, and nothing is asked for it.
#include "session/remote_logs.h"

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <utility>

#include "align/pair/run.h"
#include "nlohmann/json.hpp"
#include "session/helper_answer.h"
#include "support/diagnostics.h"
#include "support/package_script.h"
#include "support/url.h"

namespace opguard {
namespace {

namespace fs = std::filesystem;

constexpr const char* kBring = R"(
from opguard import bring_logs
bring_logs.serve(dict(zip(sys.argv[1::2], sys.argv[2::2])))
)";

// "s3://bucket/runs/a" -> "s3/bucket/runs/a": what a person takes it for.
// No "..": a URL names a folder below ours, whatever it holds.
fs::path folder_of_url(const std::string& url) {
  const std::string name = url_name(url);
  const size_t scheme = name.find("://");
  fs::path place = name.substr(0, scheme);
  for (const fs::path& part : fs::path(name.substr(scheme + 3)))
    if (part != ".." && part != "/" && part != ".") place /= part;
  return place;
}

// Bytes of a file, each range by where it begins: where it ends.
using Extents = std::map<uint64_t, uint64_t>;

// Leaves out what is there already at the beginning of a range and at its end.
void cut_to_missing(const Extents& have, uint64_t& from, uint64_t& end) {
  const auto next = have.upper_bound(from);
  if (next != have.begin()) from = std::max(from, std::prev(next)->second);
  if (next != have.end() && next->second >= end) end = std::min(end, next->first);
}

// Joins what touches, so that the ranges stay few and never overlap.
void add_extent(Extents& have, uint64_t from, uint64_t end) {
  auto at = have.upper_bound(from);
  if (at != have.begin() && std::prev(at)->second >= from) from = (--at)->first;
  while (at != have.end() && at->first <= end) {
    end = std::max(end, at->second);
    at = have.erase(at);
  }
  have[from] = end;
}

}  // namespace

llvm::Expected<std::unique_ptr<RemoteLogs>> RemoteLogs::open(
    const std::vector<std::string>& folders, const std::string& python) {
  std::unique_ptr<RemoteLogs> logs(new RemoteLogs);
  if (std::none_of(folders.begin(), folders.end(), [](const auto& dir) { return is_url(dir); }))
    return logs;
  auto work = WorkFolder::temporary();
  if (!work) return work.takeError();
  logs->work_ = std::make_unique<WorkFolder>(std::move(*work));
  std::vector<std::string> words;
  for (const std::string& url : folders) {
    if (!is_url(url) || logs->here_.contains(url)) continue;
    fs::path place = fs::path(logs->work_->path()) / std::to_string(logs->here_.size());
    place /= folder_of_url(url);
    std::error_code failed;
    fs::create_directories(place, failed);
    if (failed) return make_error("cannot make " + place.string() + ": " + failed.message());
    logs->here_[url] = place.string();
    words.push_back(place.string());
    words.push_back(url);
  }
  auto helper = Conversation::begin(package_command(python, kBring, words));
  if (!helper) return helper.takeError();
  auto listed = read_answer((*helper)->listen());
  if (!listed) return listed.takeError();
  logs->all_bytes_ = listed->bytes;
  logs->helper_ = std::move(*helper);
  logs->bring_ = [logs = logs.get()](const std::vector<FilePiece>& pieces) {
    return logs->bring_pieces(pieces);
  };
  return logs;
}

RemoteLogs::~RemoteLogs() = default;

std::string RemoteLogs::here(const std::string& folder) const {
  const auto found = here_.find(folder);
  return found == here_.end() ? folder : found->second;
}

// One round trip for all pieces of a call; none where all of it is here.
std::string RemoteLogs::bring_pieces(const std::vector<FilePiece>& pieces) {
  nlohmann::json wanted = nlohmann::json::array();
  for (const FilePiece& piece : pieces) {
    // The other side's logs may lie here.
    if (!piece.path.starts_with(work_->path())) continue;
    std::error_code failed;
    const uint64_t size = fs::file_size(piece.path, failed);
    if (failed) continue;  // who reads it says so
    uint64_t from = std::min(piece.at, size);
    Extents& have = brought_[piece.path];
    uint64_t end = from + std::min(piece.bytes, size - from);
    cut_to_missing(have, from, end);
    if (from >= end) continue;
    wanted.push_back({piece.path, from, end - from});
    // Pieces of one question may overlap. If it fails, so does the comparison.
    add_extent(have, from, end);
  }
  if (wanted.empty()) return "";
  ++trips_;
  auto brought = read_answer(helper_->ask(wanted.dump()));
  if (!brought) return llvm::toString(brought.takeError());
  bytes_ += brought->bytes;
  return "";
}

std::string RemoteLogs::as_given(std::string text) const {
  for (const auto& [url, folder] : here_) {
    const std::string name = url_name(url);
    for (size_t at = 0; (at = text.find(folder, at)) != std::string::npos; at += name.size())
      text.replace(at, folder.size(), name);
  }
  return text;
}

void RemoteLogs::name_as_given(Run& run) const {
  if (here_.empty()) return;
  run.dir = as_given(run.dir);
  for (ProcessLog& log : run.processes) log.path = as_given(log.path);
}

void RemoteLogs::name_as_given(JudgedRuns& judged) const {
  for (Run* run : {judged.a.get(), judged.b.get()}) name_as_given(*run);
}

llvm::Expected<Run> RemoteLogs::load(const std::string& folder) const {
  auto run = load_run(here(folder), {.bring = bring()});
  if (!run) return make_error(as_given(llvm::toString(run.takeError())));
  name_as_given(*run);
  return run;
}

std::string RemoteLogs::bring_all(const std::string& folder) const {
  if (!helper_ || !here_.contains(folder)) return "";
  std::vector<FilePiece> pieces;
  std::error_code failed;
  for (const auto& file : fs::directory_iterator(here(folder), failed))
    pieces.push_back({file.path().string()});
  return failed ? failed.message() : as_given(bring_(pieces));
}

std::string RemoteLogs::told() const {
  if (!helper_) return "";
  return "brought " + byte_amount(bytes_) + " of " + byte_amount(all_bytes_) + " in " +
         std::to_string(trips_) + " round trip" + (trips_ == 1 ? "" : "s");
}

}  // namespace opguard
