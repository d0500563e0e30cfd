#include "matcher/operator_names.h"

#include "gtest/gtest.h"

namespace opguard {
namespace {

Site site(Form form, const std::string& callee) {
  Site s;
  s.form = form;
  s.callee = callee;
  return s;
}

TEST(Names, OneOperatorOneName) {
  for (const char* callee : {"softmax", "torch.softmax", "F.softmax", ".softmax", "x.y.softmax"})
    EXPECT_EQ(operator_name(site(Form::call, callee)), "softmax") << callee;
  EXPECT_EQ(operator_name(site(Form::call, "super().forward")), "forward");
  EXPECT_EQ(operator_name(site(Form::call, "")), "call");
  EXPECT_EQ(operator_name(site(Form::binary, "*")), "mul");
  EXPECT_EQ(operator_name(site(Form::unary, "-")), "neg");
  EXPECT_EQ(operator_name(site(Form::binary, "-")), "sub");
  EXPECT_EQ(operator_name(site(Form::augment, "+=")), "add");
  EXPECT_EQ(operator_name(site(Form::augment, "+")), "add");
  EXPECT_EQ(operator_name(site(Form::compare, "<=")), "le");
  EXPECT_EQ(operator_name(site(Form::subscript, "[]")), "getitem");
  EXPECT_EQ(operator_name(site(Form::subscript, "[]=")), "setitem");
  EXPECT_EQ(operator_name(site(Form::iterate, "for")), "iter");
}

TEST(Names, AliasesAreSpeltOut) {
  EXPECT_EQ(full_callee(site(Form::call, "F.softmax")), "torch.nn.functional.softmax");
  EXPECT_EQ(full_callee(site(Form::call, "nn.functional.softmax")), "torch.nn.functional.softmax");
  EXPECT_EQ(full_callee(site(Form::call, "dist.all_reduce")), "torch.distributed.all_reduce");
  EXPECT_EQ(full_callee(site(Form::call, "selfF.x")), "selfF.x");
  EXPECT_EQ(full_callee(site(Form::augment, "**=")), "**");
}

}  // namespace
}  // namespace opguard
