// report/html.h: the report as one HTML file that opens offline.
//
//   report.html    the page of src/report/page, its style, its script, the data as JSON: one file
//
// Counterexample: a page beside a folder of scripts. It would be sent on without them.
#pragma once

#include <string>
#include <string_view>

#include "report/report.h"

namespace opguard {

// The page of src/report/page with the report's data in it. It loads nothing and asks nobody: its
// content security policy admits its own style and script by their digests and nothing else.
std::string format_html(const Report& report);

// A page with its style, its script and `json` in place of its marks: {{style}}, {{style-digest}},
// {{script}}, {{script-digest}}, {{data}}.
std::string filled_page(std::string_view html, std::string_view css, std::string_view js,
                        const std::string& json);

// As a content security policy names an inline script or style: "'sha256-...'".
std::string policy_digest(std::string_view text);

}  // namespace opguard
