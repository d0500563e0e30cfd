// support/url.h: a folder that lies elsewhere, and what is told of it.
//
//   "s3://key:secret@bucket/run?endpoint=..."   shown as "s3://bucket/run"
#pragma once

#include <string>
#include <string_view>

namespace opguard {

// "s3://bucket/run": what has a scheme.
bool is_url(std::string_view dir);
// It as it may be shown: without a key, and without what follows a `?`. Any other folder: itself.
std::string url_name(const std::string& dir);

}  // namespace opguard
