// report/identity.h: what made a report, of what, and when: a page that is sent on says it itself.
//
//   A  v1 (9488786f21ab)
//   B  v2 (02c5f1b7d4e0)
//   opguard 0.1.0 (e0bcf23c9a11), 24 Nov 2026 21:27 UTC: opguard diff --git v1..v2 -- python
//   train.py
#pragma once

#include <string>

#include "nlohmann/json_fwd.hpp"
#include "record/record.h"

namespace opguard {

// Of the JSON that opguard writes: it grows when a field changes its meaning, which none has done.
inline constexpr int kSchemaVersion = 1;

struct Identity {
  std::string command;  // of opguard
  std::string date;     // "2026-11-24T21:27:31Z"
};

// Of this process, now.
Identity identity_now();

// {"opguard": {"version": "0.1.0", "commit": "e0bcf23c9a11"}, "schema": 1, "command": "...",
//  "date": "..."}: the first fields of every JSON file.
nlohmann::ordered_json identity_json(const Identity& identity);

// What ran: its command, tree and revision, and when it began.
nlohmann::ordered_json run_json(const Run& run);

// What people call a run: "v1 (9488786f21ab)", "/data/good (9488786f21ab+)", or its folder of logs.
std::string run_title(const Run& run);

// The place in the sources of a line as a page of the repository's host, "" where none is known:
// "https://github.com/o/n/blob/<commit>/model.py#L61".
std::string web_link(const Provenance& provenance, const std::string& path, uint32_t line);

}  // namespace opguard
