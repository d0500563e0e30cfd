// fleet/map_page.h: the files of src/fleet/page, as the build put them into the program.
#pragma once

#include <string_view>

namespace opguard::map_page {

// Texts of the program itself: they live as long as it does.
std::string_view html();
std::string_view css();
std::string_view js();

}  // namespace opguard::map_page
