// fleet/map_page.h: the files of src/fleet/page, as the build put them into the program.
#pragma once

#include <string_view>

namespace opguard::map_page {

std::string_view html();
std::string_view css();
std::string_view js();

}  // namespace opguard::map_page
