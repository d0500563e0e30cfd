#include "support/package_script.h"

#include <sstream>

#include "support/install.h"

namespace opguard {
namespace {

constexpr const char* kLoad = R"(
import sys
sys.path[:] = [p for p in sys.path if p]
import importlib.util, os, warnings
package = sys.argv.pop(1)
spec = importlib.util.spec_from_file_location("opguard", os.path.join(package, "__init__.py"), submodule_search_locations=[package])
sys.modules["opguard"] = opguard = importlib.util.module_from_spec(spec)
warnings.showwarning = lambda message, *_, **__: sys.stderr.write("opguard: warning: %s\n" % message)
try:
    spec.loader.exec_module(opguard)
)";
constexpr const char* kEnd = R"(
except (ImportError, OSError, ValueError) as error:
    sys.exit("opguard: error: %s" % error)
)";

}  // namespace

std::vector<std::string> package_command(const std::string& python, const std::string& body,
                                         const std::vector<std::string>& words) {
  std::string script = kLoad;
  std::istringstream lines(body);
  for (std::string line; std::getline(lines, line);) script += "    " + line + "\n";
  std::vector<std::string> command = {python, "-B", "-c", script + kEnd, python_package_dir()};
  command.insert(command.end(), words.begin(), words.end());
  return command;
}

}  // namespace opguard
