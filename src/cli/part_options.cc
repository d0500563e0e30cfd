#include "cli/part_options.h"

#include <string>

namespace opguard {

CLI::Option* add_part_options(CLI::App& command, PartOptions& parts, CLI::Option* a, CLI::Option* b,
                              CLI::Option* single) {
  CLI::Option* part =
      command
          .add_option("--part", parts.part,
                      "Compare part I of N of the ranks alone, and write what they tell to -o "
                      "(opguard help parts)")
          ->type_name("I/N");
  CLI::Option* merge =
      command
          .add_option("--merge", parts.merge, "One verdict of these parts, in place of two logs")
          ->type_name("PART")
          ->excludes(a)
          ->excludes(b)
          ->excludes(single);
  CLI::Option* on =
      command
          .add_option("--on", parts.on,
                      "Have the ranks compared by workers, and merge their parts: threads, ray, "
                      "or ray://ADDRESS (opguard help parts)")
          ->type_name("WHERE")
          ->excludes(part)
          ->excludes(merge)
          ->excludes(single)
          ->check([](const std::string& where) {
            return where == "threads" || where == "ray" || where.starts_with("ray://")
                       ? ""
                       : "neither threads, ray nor ray://ADDRESS: " + where;
          });
  command.add_option("--parts", parts.parts, "Into how many parts [two a worker]")
      ->type_name("N")
      ->check(CLI::PositiveNumber)
      ->needs(on);
  command
      .add_option("--pages", parts.pages,
                  "With --part or --on: a page of each rank that differs, in this folder; with "
                  "--merge: the map of --html links them")
      ->type_name("DIR");
  command.add_option("-o,--output", parts.out, "The file for a part, or for merged ones")
      ->type_name("FILE");
  return merge;
}

}  // namespace opguard
