// record/provenance.h: which program made a run: its command, its tree, and what git says of that.
//
//   opguard diff --git v1..v2 runs v1 in /tmp/opguard-x/tree_a, a folder that goes with the run.
//   A report names /tmp/opguard-x/tree_a/model.py as model.py (v1), and links it to /repo/model.py.
//
// On disk it is run.json beside the logs: docs/formats/json.md.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace opguard {

struct Provenance {
  std::string command;     // as shell text; "": nobody told, and nothing else is known either
  std::string tree;        // the folder the program ran in, absolute
  std::string home;        // what that is a copy of; "": it is none
  std::string revision;    // as the user named it: "v1", "working tree"; "": no revision was named
  std::string repository;  // root of the git work tree that holds `home` or `tree`; "": none does
  std::string commit;      // 40 hex digits
  bool changed = false;    // the files are those of the commit, and uncommitted changes
  std::string remote;      // where the repository comes from, without names and passwords

  // The path below the copy, "model.py"; "" for a file that is not in a copy, and without a copy.
  std::string_view copied(std::string_view path) const;
  // Where a file is when the copy is gone: "/repo/model.py". Other paths are as they were.
  std::string home_path(const std::string& path) const;
  // For people: "model.py" of a named revision, else home_path.
  std::string shown_path(const std::string& path) const;
  // Behind a place that shown_path names: " (v1)"; "" for a file of no named revision.
  std::string label(const std::string& path) const;
  // "v1 (9488786f21ab)", "9488786f21ab+" with uncommitted changes; "" where git knows nothing.
  std::string version() const;

  bool operator==(const Provenance&) const = default;
};

}  // namespace opguard
