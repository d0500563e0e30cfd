// Reads what was asked for, once, and says at the end what became of each line.
//
//   --capture attention.softmax@3:out0        asked for by that boundary alone
//   --capture attention.softmax:out0          where the boundary ends is open: asked everywhere
//   --transplant f@0:out0=h.safetensors       the file is read now; of another rank's it is not
//
//   settings of the log     capture: "3 tensors in 2 files"; transplant.0: "not reached"
//
// A line that cannot be read is told and counted, and the run goes on. Counterexample: to end it.
// The program may have run for hours before the line is met.
//
// `process` counts the logs of this rank that are there already: it tells a second process from the
// first. In a forked child nothing was done yet, but the values are loaded still.
#include "runtime/watch/watch_list.h"

#include <dirent.h>

#include "runtime/watch/watch.h"

namespace opguard {
namespace {

void tell(const std::string& what) {
  PySys_WriteStderr("opguard: %.700s\n", what.c_str());
  PyErr_Clear();
}

template <typename F>
void each_line(std::string_view text, F f) {
  while (!text.empty()) {
    const size_t end = text.find('\n');
    if (end != 0) f(text.substr(0, end));
    text.remove_prefix(end == text.npos ? text.size() : end + 1);
  }
}

// How many processes of this rank have written a log here before.
uint32_t logs_of(const std::string& dir, int32_t rank) {
  const std::string start = "rank" + std::to_string(rank) + "-";
  uint32_t count = 0;
  DIR* folder = opendir(dir.c_str());
  if (folder == nullptr) return 0;
  while (const dirent* entry = readdir(folder)) {
    const std::string_view name = entry->d_name;
    count += name.starts_with(start) && name.find(".log") != name.npos;
  }
  closedir(folder);
  return count;
}

}  // namespace

WatchList& watch_list() {
  static auto* instance = new WatchList;
  return *instance;
}

void fail_capture(const std::string& why) {
  WatchList& w = watch_list();
  if (w.failed++ > 0) return;
  w.failure = why;
  tell("warning: not captured: " + why + "; the run goes on, what is missing is counted");
}

void refuse(WantedTransplant& planned, const std::string& why) {
  if (!planned.refused.empty()) return;
  planned.refused = why;
  tell("warning: no transplant of " + transplant_text(planned.transplant) + ": " + why);
}

bool g_watching = false;

// Lines keep their order, in which the log's settings number them; those that are refused too.
void start_watching(std::string_view captures, std::string_view transplants, const std::string& dir,
                    int32_t rank) {
  WatchList& w = watch_list();
  w.dir = dir;
  w.rank = rank;
  w.process = logs_of(dir, rank);
  std::string error;
  each_line(captures, [&](std::string_view line) {
    WantedCapture captured;
    if (parse_selection(line, captured.selection, error))
      w.captures.push_back(std::move(captured));
    else
      fail_capture(error);
  });
  each_line(transplants, [&](std::string_view line) {
    WantedTransplant& planned = w.transplants.emplace_back();
    planned.transplant.selection.text = line;
    if (!parse_transplant(line, planned.transplant, error)) return refuse(planned, error);
    // Another rank's is never met here, and its file may be large.
    if (planned.transplant.selection.rank.value_or(rank) != rank) return;
    if (std::string why = load_value(planned.transplant, planned.value); !why.empty())
      return refuse(planned, why);
    planned.loaded = true;
    w.transplants_at[planned.transplant.selection.boundary].push_back(w.transplants.size() - 1);
  });
  for (size_t i = 0; i < w.captures.size(); ++i) {
    const Selection& s = w.captures[i].selection;
    if (s.slot_in_boundary)
      w.captures_anywhere.push_back(i);
    else
      w.captures_at[s.boundary].push_back(i);
  }
  g_watching = !w.captures.empty() || !w.transplants.empty();
}

void start_drilling(std::string_view selections, PyObject* driller) {
  WatchList& w = watch_list();
  std::string error;
  each_line(selections, [&](std::string_view line) {
    WantedDrill drilled;
    if (parse_selection(line, drilled.selection, error) && drilled.selection.occurrence)
      w.drills.push_back(std::move(drilled));
    else
      tell("warning: nothing is drilled: " + error);
  });
  Py_INCREF(driller);
  w.driller = driller;
  g_watching = g_watching || !w.drills.empty();
}

// Whether a node's hook is to be called before it runs as well: what it reads is to be replaced, or
// its inside looked into.
bool watched_before(std::string_view boundary, std::string_view node) {
  const auto means = [&](const Selection& s) {
    return s.boundary == boundary && (s.kind.empty() || s.kind == "node") &&
           (s.node.empty() || s.node == node);
  };
  const WatchList& w = watch_list();
  for (const WantedDrill& drilled : w.drills)
    if (means(drilled.selection)) return true;
  const auto at = w.transplants_at.find(boundary);
  if (at == w.transplants_at.end()) return false;
  for (const size_t i : at->second) {
    const Selection& s = w.transplants[i].transplant.selection;
    if (s.phase == "backward" && !s.slot.starts_with("out") && means(s)) return true;
  }
  return false;
}

void watch_after_fork() {
  WatchList& w = watch_list();
  for (WantedCapture& captured : w.captures) captured.events = 0;
  for (WantedTransplant& planned : w.transplants) {
    planned.done = false;
    if (planned.loaded) planned.refused.clear();
  }
  for (WantedDrill& drilled : w.drills) drilled.done = false;
  w.process.reset();
  w.files = w.tensors = w.failed = 0;
  w.failure.clear();
}

// As the log says it of itself at the end.
std::map<std::string, std::string> watch_settings() {
  std::map<std::string, std::string> settings;
  WatchList& w = watch_list();
  if (!w.captures.empty()) {
    std::string text =
        std::to_string(w.tensors) + " tensors in " + std::to_string(w.files) + " files";
    if (w.failed > 0) text += ", " + std::to_string(w.failed) + " failed: " + w.failure;
    settings["capture"] = text;
    for (size_t i = 0; i < w.captures.size(); ++i)
      settings["capture." + std::to_string(i)] = std::to_string(w.captures[i].events);
  }
  for (size_t i = 0; i < w.drills.size(); ++i)
    settings["drill." + std::to_string(i)] = w.drills[i].done ? "done" : "not reached";
  size_t done = 0;
  for (size_t i = 0; i < w.transplants.size(); ++i) {
    const WantedTransplant& planned = w.transplants[i];
    done += planned.done;
    settings["transplant." + std::to_string(i)] = planned.done              ? "done"
                                                  : planned.refused.empty() ? "not reached"
                                                                            : planned.refused;
    if (planned.done)
      settings["transplant." + std::to_string(i) + ".was"] = planned.same ? "same" : "other";
    if (planned.done && !planned.held.empty())
      settings["transplant." + std::to_string(i) + ".held"] = planned.held;
  }
  if (!w.transplants.empty())
    settings["transplant"] =
        "done " + std::to_string(done) + " of " + std::to_string(w.transplants.size());
  return settings;
}

}  // namespace opguard
