#include "preflight/data_owner.h"

#include "gtest/gtest.h"
#include "parser/parse.h"

namespace opguard {
namespace {

// Of the file's last write.
bool may_own_in(const std::string& text) {
  const SourceFile file = make_source("", "m.py", "/m.py", text);
  Diagnostics diags;
  const std::vector<Site> sites = parse_sites(file, diags);
  for (auto site = sites.rbegin(); site != sites.rend(); ++site)
    if (site->form == Form::write) return may_own_data(*site, read_classes(file));
  ADD_FAILURE() << text << diags.text();
  return false;
}

// Of the only write in a class so begun.
bool may_own(const std::string& header, const std::string& target = "self.data") {
  return may_own_in("class Other(Tensor): pass\n" + header + "\n    def put(self, v):\n        " +
                    target + " = v\n");
}

TEST(DataOwner, OnlyKnownBasesHoldNoTensor) {
  EXPECT_FALSE(may_own("class Corpus:"));
  EXPECT_FALSE(may_own("class Corpus():"));
  EXPECT_FALSE(may_own("class Corpus( torch.utils.data.Dataset , nn.Module):"));
  EXPECT_FALSE(may_own("class Module(nn.Module):"));
  EXPECT_FALSE(may_own("@dataclass\nclass Corpus:"));
  EXPECT_FALSE(may_own("class Corpus[T](Dataset):"));
  EXPECT_TRUE(may_own("class Corpus(nn.Parameter):"));
  EXPECT_TRUE(may_own("class Corpus(Dataset, Quantized):"));
  EXPECT_TRUE(may_own("class Corpus(Dataset, metaclass=Meta):"));
  EXPECT_TRUE(may_own("class Corpus(find('nn.Module')):"));
}

TEST(DataOwner, AnyOtherReceiverMay) {
  EXPECT_TRUE(may_own("class Corpus:", "v.data"));
  EXPECT_TRUE(may_own("class Corpus:", "self.weight.data"));
  EXPECT_TRUE(may_own_in("class Corpus:\n  @staticmethod\n  def put(self, v): self.data = v\n"));
  EXPECT_TRUE(
      may_own_in("class Corpus:\n  def make(self):\n    def put(self, v): self.data = v\n"));
  EXPECT_TRUE(may_own_in("def put(self, v): self.data = v\n"));
  EXPECT_TRUE(may_own_in("class put:\n  self.data = 1\n"));
  EXPECT_FALSE(may_own_in("class Corpus:\n  def put(this, v): this.data = v\n"));
}

// A class is where it stands, whatever else has its name or looks like it.
TEST(DataOwner, TheClassAroundTheWriteDecides) {
  const std::string put = "    def put(self, v): self.data = v\n";
  EXPECT_FALSE(may_own_in("note = 'class Corpus(Tensor):'\nclass Corpus:\n" + put));
  EXPECT_FALSE(may_own_in("'''\nclass Corpus(Tensor): pass\n'''\nclass Corpus:\n" + put));
  EXPECT_FALSE(may_own_in("@register('class Corpus(Tensor):')\nclass Corpus(Dataset):\n" + put));
  EXPECT_TRUE(may_own_in("# class Scale: pass\nclass Scale(Tensor):\n" + put));
  EXPECT_FALSE(may_own_in("class Scale(Tensor):\n  class Corpus:\n" + put));
  EXPECT_TRUE(may_own_in("class Corpus:\n  class Scale(Tensor):\n" + put));
  EXPECT_FALSE(may_own_in("if old: A = 1; class_ = 2\nelse:\n  class A:\n" + put));
  EXPECT_FALSE(may_own_in("if old:\n  class A(Tensor): pass\nelse:\n  class A:\n" + put));
  EXPECT_TRUE(may_own_in("if old:\n  class A: pass\nelse:\n  class A(Tensor):\n" + put));
}

TEST(DataOwner, ClassesOfTheFileAreFollowed) {
  const std::string put = "    def put(self, v): self.data = v\n";
  EXPECT_FALSE(may_own_in("class Base(Dataset): pass\nclass Corpus(Base):\n" + put));
  EXPECT_TRUE(may_own_in("class Base(Tensor): pass\nclass Corpus(Base):\n" + put));
  EXPECT_TRUE(may_own_in("class Module(Tensor): pass\nclass Corpus(Module):\n" + put));
  EXPECT_FALSE(may_own_in("class Corpus(Dataset):\n" + put + "class Large(Corpus): pass\n"));
  EXPECT_TRUE(may_own_in("class Put:\n" + put +
                         "class More(Put): pass\nclass Scale(More, nn.Parameter): pass\n"));
  EXPECT_TRUE(may_own_in("class A(B): pass\nclass B(A):\n" + put));
}

}  // namespace
}  // namespace opguard
