#include "support/url.h"

namespace opguard {

bool is_url(std::string_view dir) {
  const size_t end = dir.find("://");
  return end != std::string_view::npos && end > 0 &&
         dir.substr(0, end).find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789+.-") ==
             std::string_view::npos;
}

std::string url_name(const std::string& dir) {
  if (!is_url(dir)) return dir;
  std::string name = dir.substr(0, dir.find('?'));
  const size_t begin = name.find("://") + 3, at = name.find('@', begin);
  if (at < name.find('/', begin)) name.erase(begin, at + 1 - begin);
  return name;
}

}  // namespace opguard
