// report/uri.h: a path as part of a URI: "/home/me/my model.py" -> "/home/me/my%20model.py".
#pragma once

#include <string>

#include "llvm/ADT/StringRef.h"

namespace opguard {

// RFC 3986: all bytes of a path but letters, digits and /-._~ are spelled out.
std::string uri(llvm::StringRef path);

}  // namespace opguard
