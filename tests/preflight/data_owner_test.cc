#include "preflight/data_owner.h"

#include "gtest/gtest.h"
#include "parser/parse.h"

namespace opguard {
namespace {

// Of the only write in a class so begun.
bool may_own(const std::string& header, const std::string& target = "self.data") {
  const std::string text = "class Other(Tensor): pass\n" + header +
                           "\n    def put(self, v):\n        " + target + " = v\n";
  Diagnostics diags;
  for (const Site& site : parse_sites(make_source("", "m.py", "/m.py", text), diags))
    if (site.form == Form::write) return may_own_data(site, text);
  ADD_FAILURE() << text << diags.text();
  return false;
}

TEST(DataOwner, OnlyKnownBasesHoldNoTensor) {
  EXPECT_FALSE(may_own("class Corpus:"));
  EXPECT_FALSE(may_own("class Corpus():"));
  EXPECT_FALSE(may_own("class Corpus( torch.utils.data.Dataset , nn.Module):"));
  EXPECT_TRUE(may_own("class Corpus(nn.Parameter):"));
  EXPECT_TRUE(may_own("class Corpus(Dataset, Quantized):"));
  EXPECT_TRUE(may_own("class Corpus(Dataset, metaclass=Meta):"));
  EXPECT_TRUE(may_own("class Corpus[T](Dataset):"));
}

TEST(DataOwner, AnyOtherReceiverMay) {
  EXPECT_TRUE(may_own("class Corpus:", "v.data"));
  EXPECT_TRUE(may_own("class Corpus:", "self.weight.data"));
}

// The class of an instance that a function of another name holds is not known.
TEST(DataOwner, AClassElsewhereMay) {
  Site site;
  site.receiver = "self";
  site.scope = "Corpus.put";
  EXPECT_TRUE(may_own_data(site, "class Corpus2: pass\n"));
  EXPECT_FALSE(may_own_data(site, "class Corpus: pass\n"));
  site.scope = "put";
  EXPECT_TRUE(may_own_data(site, "class put: pass\n"));
}

}  // namespace
}  // namespace opguard
