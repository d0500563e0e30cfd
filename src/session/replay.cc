// The replay is recorded as the job was: its log's header tells mode, steps and seed. Its exit code
// counts: a replay that failed is compared with nothing.
//
//   origin      computed otherwise by itself           this is the rank to name
//   received    what the others gave it was another    it only follows
//   exchanged   every rank gave the same, and the result of the exchange is another
//
// Counterexample: every rank is an origin from the first step on. The sentence says then that it is
// another version, machine or checkpoint, and no fault of one device.
#include "session/replay.h"

#include <algorithm>
#include <filesystem>

#include "align/check/replay.h"
#include "align/judge/pivot_view.h"
#include "align/pair/run.h"
#include "align/pair/settings.h"
#include "nlohmann/json.hpp"
#include "record/step_window.h"
#include "report/identity.h"
#include "report/reasons.h"
#include "session/record_program.h"
#include "session/work_folder.h"
#include "support/diagnostics.h"
#include "support/exit_code.h"
#include "support/say.h"
#include "support/text.h"
#include "support/write_file.h"

namespace opguard {
namespace {

using Json = nlohmann::ordered_json;

// As it stands in the JSON.
const char* role_name(ReplayRole role) {
  switch (role) {
    case ReplayRole::same:
      return "same";
    case ReplayRole::origin:
      return "origin";
    case ReplayRole::received:
      return "received";
    case ReplayRole::exchanged:
      return "exchanged";
    case ReplayRole::unknown:
      return "unknown";
  }
  return "";
}

std::string replayed_place(const Run& job, const ReplayRank& rank) {
  return place(view(job, rank.event));
}

std::string replay_place(const Run& job, const ReplayRank& rank) {
  return "step " + std::to_string(rank.step) + ", " + rank.name + ", " + replayed_place(job, rank);
}

//   rank 5 on node17: did not compute what its replay computes: step 1204, grad:up.weight, ...
std::string line_of(const Run& job, const ReplayRank& rank) {
  const std::string who =
      "rank " + std::to_string(rank.rank) + (rank.host.empty() ? "" : " on " + rank.host) + ": ";
  switch (rank.role) {
    case ReplayRole::same:
      return who + "as replayed, " + counted(rank.compared, "value");
    case ReplayRole::origin:
      return who + "did not compute what its replay computes: " + replay_place(job, rank);
    case ReplayRole::received:
      return who + "received other values: " + replay_place(job, rank);
    case ReplayRole::exchanged:
      return who +
             "received another result though no rank gave other values: " + replay_place(job, rank);
    case ReplayRole::unknown:
      return who + "nothing could be compared";
  }
  return who;
}

size_t count(const ReplayCheck& check, ReplayRole role) {
  return size_t(std::count_if(check.ranks.begin(), check.ranks.end(),
                              [&](const ReplayRank& rank) { return rank.role == role; }));
}

// One sentence.
std::string replay_sentence(const ReplayCheck& check) {
  if (check.first_step == kNone)
    return "could not tell: no value of the log has its like in the replay; does --first-step say "
           "which step the replay begins with?";
  const std::string steps =
      check.first_step == check.last_step
          ? "step " + std::to_string(check.first_step)
          : "steps " + std::to_string(check.first_step) + " to " + std::to_string(check.last_step);
  const size_t origins = count(check, ReplayRole::origin);
  const bool from_start =
      std::all_of(check.ranks.begin(), check.ranks.end(), [&](const ReplayRank& rank) {
        return rank.role == ReplayRole::origin && rank.step == check.first_step;
      });
  if (from_start && check.ranks.size() > 1)
    return "differs: every rank does from step " + std::to_string(check.first_step) +
           " on; that is another version, machine or checkpoint, and no fault of one device";
  if (origins > 0)
    return "differs: " + counted(origins, "rank") + " computed otherwise, in " + steps;
  if (count(check, ReplayRole::exchanged) > 0)
    return "differs: an exchange gave another result, in " + steps;
  if (count(check, ReplayRole::received) > 0) return "differs: in " + steps;
  return count(check, ReplayRole::unknown) > 0
             ? "could not tell: not every rank could be compared"
             : "same: every rank computed what its replay computes, " + steps;
}

// What differs comes before what is not known: one rank that differs is an answer.
int code_of(const ReplayCheck& check) {
  for (const ReplayRole role : {ReplayRole::origin, ReplayRole::exchanged, ReplayRole::received})
    if (count(check, role) > 0) return kNo;
  return check.first_step == kNone || count(check, ReplayRole::unknown) > 0 ? kCouldNotTell : kYes;
}

llvm::Error write_replay(const ReplayCheck& check, const Run& job, const std::string& path) {
  Json json = identity_json(identity_now());
  json["conclusion"] = replay_sentence(check);
  json["first_step"] = check.first_step == kNone ? Json() : Json(check.first_step);
  json["last_step"] = check.last_step;
  json["ranks"] = Json::array();
  for (const ReplayRank& rank : check.ranks) {
    const bool differs = rank.event.process >= 0;
    json["ranks"].push_back({{"rank", rank.rank},
                             {"host", rank.host},
                             {"role", role_name(rank.role)},
                             {"compared", rank.compared},
                             {"alone", rank.alone},
                             {"step", differs ? Json(rank.step) : Json()},
                             {"micro_batch", differs ? Json(rank.micro_batch) : Json()},
                             {"tensor", rank.name},
                             {"place", differs ? replayed_place(job, rank) : ""}});
  }
  return write_file(path, json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n");
}

// Recorded as the log was.
llvm::Expected<std::string> record_replay(const ReplayOptions& opt, const Run& job,
                                          const std::string& work) {
  const ProcessLog& log = job.processes.front();
  RecordOptions record;
  record.log = work + "/replay";
  record.command = opt.command;
  record.first_step = opt.first_step;
  record.hint = false;
  if (const auto mode = log.settings.find("mode"); mode != log.settings.end())
    record.mode = mode->second;
  if (const auto steps = log.settings.find("steps"); steps != log.settings.end())
    record.steps = steps->second;
  if (const auto seed = log.settings.find("control.seed"); seed != log.settings.end()) {
    record.deterministic = true;
    record.seed = std::strtoull(seed->second.c_str(), nullptr, 10);
  }
  const int code = record_program(record);
  if (code != 0)
    return make_error("the replay ended with exit code " + std::to_string(code) +
                      ": nothing is compared");
  return record.log;
}

llvm::Expected<int> replay_in(const ReplayOptions& opt, const std::string& work) {
  auto job = load_run(opt.log);
  if (!job) return job.takeError();
  std::string log = opt.replayed;
  if (log.empty()) {
    auto made = record_replay(opt, *job, work);
    if (!made) return made.takeError();
    log = *made;
  }
  auto again = load_run(log);
  if (!again) return again.takeError();
  const ReplayCheck check = check_replay(*job, *again);
  std::string text = replay_sentence(check) + "\n";
  for (const ReplayRank& rank : check.ranks) text += "  " + shown(line_of(*job, rank)) + "\n";
  const SettingsReport settings = compare_settings(*job, *again);
  for (const auto* list : {&settings.refused, &settings.noted})
    for (const std::string& setting : words(*list)) text += "note: " + shown(setting) + "\n";
  print_lines(text);
  if (!opt.json.empty())
    if (auto failed = write_replay(check, *job, opt.json)) return failed;
  return code_of(check);
}

}  // namespace

int replay(const ReplayOptions& opt) {
  return work_in(opt.keep, "the replay's logs",
                 [&](const std::string& work) { return replay_in(opt, work); });
}

}  // namespace opguard
