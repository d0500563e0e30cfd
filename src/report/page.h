// report/page.h: the files of src/report/page, as the build put them into the program.
#pragma once

#include <string_view>

namespace opguard::page {

std::string_view html();
std::string_view css();
std::string_view js();  // its parts in the order of CMakeLists.txt

}  // namespace opguard::page
