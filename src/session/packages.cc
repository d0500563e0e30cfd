// The interpreter is asked, since only it knows its path, its .pth files and its editable installs.
// The question imports the tracer's own search and no package of the user's.
//
//   argv    <our package> /home/me/v2 transformers
//   says    {"roots": [{"package": "transformers", "dir": ..., "subdir": ...}], "missing": []}
//
// Counterexample: a tree with a json.py of its own. While our question imports `json` the tree is
// not on the path, and it is put there only for the search.
#include "session/packages.h"

#include <filesystem>

#include "nlohmann/json.hpp"
#include "support/diagnostics.h"
#include "support/install.h"
#include "support/launch.h"

namespace opguard {
namespace {

// The tracer's own search, so that a plan and a later lookup agree on every folder. Our package is
// only a path here: the interpreter may be one that cannot load its extension. argv: that path, the
// tree, package names.
constexpr const char* kSearch = R"(
import sys
# The working directory is the tree: a json.py of its own is not ours to run.
sys.path[:] = [folder for folder in sys.path if folder not in ("", ".", sys.argv[2])]
import json, types
package = sys.modules["opguard"] = types.ModuleType("opguard")
package.__path__ = [sys.argv[1]]
from opguard.load.roots import Roots
sys.path.insert(0, sys.argv[2])
roots, missing = Roots(sys.argv[2], sys.argv[3:]).describe()
print("\n" + json.dumps({"roots": roots, "missing": missing}))
)";

}  // namespace

llvm::Expected<std::vector<SourceRoot>> find_roots(const std::string& tree,
                                                   const std::vector<std::string>& packages,
                                                   const std::string& python) {
  std::error_code code;
  std::string root = std::filesystem::canonical(tree, code).string();
  if (code) return make_error("no such folder: " + tree);
  std::vector<SourceRoot> roots = {{"", root, ""}};
  if (packages.empty()) return roots;

  LaunchOptions options;
  options.command = {python, "-c", kSearch, python_package_dir(), root};
  options.command.insert(options.command.end(), packages.begin(), packages.end());
  options.cwd = root;
  options.output = Output::capture;
  options.environment = {{"PYTHONDONTWRITEBYTECODE", "1"}};
  auto result = launch(options);
  if (!result) return result.takeError();
  if (std::string failure = result->failure(); !failure.empty())
    return make_error(python + " could not be asked for its packages (" + failure + ")\n" +
                      last_lines(result->output, 5));
  // The last line that begins with a brace: a sitecustomize may have printed before it.
  size_t line = result->output.rfind("\n{");
  auto json = nlohmann::json::parse(
      line == std::string::npos ? "" : result->output.substr(line + 1), nullptr,
      /*allow_exceptions=*/false);
  if (json.is_discarded()) return make_error(python + " could not be asked for its packages");
  for (const auto& missing : json["missing"])
    return make_error(python + " finds no package '" + missing.get<std::string>() +
                      "'; name the program's interpreter with --python");
  for (const auto& found : json["roots"])
    if (found["package"] != "") roots.push_back({found["package"], found["dir"], found["subdir"]});
  return roots;
}

}  // namespace opguard
