#include <sys/stat.h>

#include "tree.h"

namespace opguard {
namespace {

namespace fs = std::filesystem;

using Apply = TreeTest;

TEST_F(Apply, WritesEveryFileAndKeepsItsMode) {
  write("a.py", "a\n");
  write("d/b.py", "b\n");
  fs::permissions(path("a.py"), fs::perms(0750));
  EXPECT_EQ(message(apply_patch({{change("a.py", "a\n", "A\n"), change("d/b.py", "b\n", "B\n")}})),
            "");
  EXPECT_EQ(read("a.py") + read("d/b.py"), "A\nB\n");
  EXPECT_EQ(fs::status(path("a.py")).permissions(), fs::perms(0750));
  EXPECT_EQ(file_count(), 2u);
}

TEST_F(Apply, AFileThatChangedStopsAll) {
  write("a.py", "a\n");
  write("b.py", "changed\n");
  EXPECT_EQ(message(apply_patch({{change("a.py", "a\n", "A\n"), change("b.py", "b\n", "B\n")}})),
            path("b.py") + " has changed since it was read");
  EXPECT_EQ(read("a.py"), "a\n");
  EXPECT_EQ(file_count(), 2u);
}

TEST_F(Apply, AFolderThatCannotBeWrittenStopsAll) {
  write("a.py", "a\n");
  write("d/b.py", "b\n");
  // A name so long that nothing fits beside it fails for every user, root too.
  std::string longest = std::string(250, 'x') + ".py";
  write(longest, "c\n");
  std::string error =
      message(apply_patch({{change("a.py", "a\n", "A\n"), change(longest, "c\n", "C\n")}}));
  EXPECT_NE(error.find("cannot write"), std::string::npos) << error;
  EXPECT_EQ(read("a.py") + read(longest), "a\nc\n");
  EXPECT_EQ(file_count(), 3u);
}

TEST_F(Apply, NothingIsWrittenThroughALink) {
  write("real/a.py", "a\n");
  fs::create_symlink(path("real/a.py"), path("link.py"));
  fs::create_directory_symlink(path("real"), path("folder"));
  EXPECT_EQ(message(apply_patch({{change("link.py", "a\n", "A\n")}})),
            path("link.py") + " is a symbolic link; it is not written through");
  EXPECT_EQ(message(apply_patch({{change("folder/a.py", "a\n", "A\n")}})),
            path("folder/a.py") + " is reached through a symbolic link; it is not written through");
  EXPECT_EQ(read("real/a.py"), "a\n");
  EXPECT_TRUE(fs::is_symlink(path("link.py")));
}

TEST_F(Apply, LinksAndFilesElsewhereAreNoPartOfWhatIsWritten) {
  write("repo/a.py", "a\n");
  write("site/b.py", "b\n");
  fs::create_symlink(path("site/b.py"), path("repo/link.py"));
  Patch patch{{{"", "a.py", path("repo/a.py"), "a\n", "A\n"},
               {"", "link.py", path("repo/link.py"), "b\n", "B\n"},
               {"pkg", "b.py", path("site/b.py"), "b\n", "B\n"}}};
  std::string notes;
  Patch kept = writable_part(patch, path("repo"), notes);
  ASSERT_EQ(kept.files.size(), 1u);
  EXPECT_EQ(kept.files[0].name, "a.py");
  EXPECT_EQ(notes,
            "link.py: note: not written: it is, or is reached through, a symbolic link\n"
            "pkg: note: not written: 1 file outside " +
                path("repo") + "\n");
  notes.clear();
  EXPECT_EQ(writable_part(patch, "", notes).files.size(), 2u);
}

TEST_F(Apply, ATreeThatIsItselfALinkIsFine) {
  write("real/a.py", "a\n");
  fs::create_directory_symlink(path("real"), path("tree"));
  FilePatch file{"", "a.py", path("tree/a.py"), "a\n", "A\n"};
  EXPECT_EQ(message(apply_patch({{file}})), "");
  EXPECT_EQ(read("real/a.py"), "A\n");
}

}  // namespace
}  // namespace opguard
