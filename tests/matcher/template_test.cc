#include "matcher/template.h"

#include "gtest/gtest.h"
#include "plan/files.h"

namespace opguard {
namespace {

Site site(Form form, const std::string& callee, const std::string& receiver = "") {
  Site s;
  s.form = form;
  s.callee = callee;
  s.receiver = receiver;
  return s;
}

std::string diagnose(const std::string& text) {
  TestDir dir;
  dir.write("family.json", text);
  Diagnostics diags;
  llvm::Expected<TemplateLibrary> library = read_templates(dir.path(), diags);
  if (library) return "";
  llvm::consumeError(library.takeError());
  std::string out = diags.text(), prefix = dir.path() + "/";
  for (size_t at; (at = out.find(prefix)) != std::string::npos;) out.erase(at, prefix.size());
  return out;
}

std::string library(const std::string& item) {
  return "{\"opguard_templates\": 1, \"templates\": [\n  " + item + "\n]}\n";
}

TEST(Template, TheMostSpecificAccepts) {
  TemplateLibrary library;
  library.templates = {{"any_self", "module", {"call"}, {"self.*"}},
                       {"method", "shape", {"call"}, {".view"}},
                       {"exact", "shape", {"call"}, {"torch.view"}},
                       {"loss", "loss", {"call"}, {"*loss_fct"}},
                       {"loop", "loading", {"iterate"}, {"*"}},
                       {"mul", "arithmetic", {"binary", "call"}, {"*"}}};
  auto accepted = [&](const Site& s) {
    const Template* t = library.accept(s);
    return t ? t->name : "";
  };
  EXPECT_EQ(accepted(site(Form::call, "torch.view")), "exact");
  EXPECT_EQ(accepted(site(Form::call, "x.view")), "method");
  EXPECT_EQ(accepted(site(Form::call, ".view")), "method");
  EXPECT_EQ(accepted(site(Form::call, "self.proj")), "any_self");
  EXPECT_EQ(accepted(site(Form::call, ".proj", "self")), "any_self");
  EXPECT_EQ(accepted(site(Form::call, "self.view")), "method");
  EXPECT_EQ(accepted(site(Form::call, "my_loss_fct")), "loss");
  EXPECT_EQ(accepted(site(Form::call, "review")), "");
  EXPECT_EQ(accepted(site(Form::iterate, "anything")), "loop");
  EXPECT_EQ(accepted(site(Form::binary, "*")), "mul");
  EXPECT_EQ(accepted(site(Form::binary, "**")), "");
  EXPECT_EQ(accepted(site(Form::call, "print")), "") << "'*' is no wildcard for calls";
}

TEST(Template, FaultsHaveACaretAndAHint) {
  EXPECT_EQ(diagnose(library(R"({"name": "a", "form": ["call"], "callees": ["f"]})")),
            "family.json:2:17: error: unknown field 'form'\n"
            "  {\"name\": \"a\", \"form\": [\"call\"], \"callees\": [\"f\"]}\n"
            "                ^~~~~~\n"
            "family.json:2:17: note: did you mean 'forms'?\n");
  EXPECT_NE(diagnose(library(R"({"name": "ä", "forms": ["cal"], "callees": ["f"]})"))
                .find("family.json:2:27: error: unknown form 'cal'\n"),
            std::string::npos);
  EXPECT_NE(diagnose(library(R"({"name": "a", "forms": ["call"], "callees": ["f*g"]})"))
                .find("'*' may stand only at one end"),
            std::string::npos);
  EXPECT_NE(diagnose(library(R"({"name": "a", "forms": ["call"], "callees": []})"))
                .find("at least one callee"),
            std::string::npos);
  EXPECT_NE(
      diagnose(library(R"({"name": "a", "forms": ["call"]})")).find("missing field 'callees'"),
      std::string::npos);
  EXPECT_NE(diagnose(library(R"({"name": "a", "forms": ["call"], "callees": ["f"]},
                                {"name": "a", "forms": ["call"], "callees": ["g"]})"))
                .find("template 'a' is already in family.json"),
            std::string::npos);
  EXPECT_NE(diagnose("{\"opguard_templates\": 9}").find("reads version 1"), std::string::npos);
  EXPECT_NE(diagnose("{\"opguard_templates\": 1, ").find("cut short"), std::string::npos);
}

TEST(Template, NoTemplates) {
  TestDir dir;
  Diagnostics diags;
  EXPECT_NE(llvm::toString(read_templates(dir.path(), diags).takeError()).find("no templates"),
            std::string::npos);
}

TEST(Template, OurOwnAreWhole) {
  Diagnostics diags;
  llvm::Expected<TemplateLibrary> library = read_templates(OPGUARD_SOURCE "/templates", diags);
  ASSERT_TRUE(static_cast<bool>(library)) << diags.text();
  struct Case {
    Form form;
    const char *callee, *name;
  };
  for (const Case& c : std::vector<Case>{
           {Form::call, "F.softmax", "softmax"},
           {Form::call, "nn.functional.softmax", "softmax"},
           {Form::call, "scores.softmax", "softmax"},
           {Form::binary, "*", "mul"},
           {Form::binary, "**", "pow"},
           {Form::augment, "+=", "add"},
           {Form::binary, "@", "matmul"},
           {Form::unary, "-", "negate"},
           {Form::compare, "<", "compare"},
           {Form::subscript, "[]=", "subscript"},
           {Form::iterate, "for", "loader"},
           {Form::call, "self.attn", "module"},
           {Form::call, "super().forward", "super"},
           {Form::call, "loss.backward", "backward"},
           {Form::call, "optimizer.step", "step"},
           {Form::call, "optimizer.zero_grad", "zero_grad"},
           {Form::call, "torch._foreach_mul_", "foreach"},
           {Form::call, "dist.all_reduce", "all_reduce"},
           {Form::call, "torch.nn.utils.clip_grad_norm_", "clip_grad"},
           {Form::call, "F.cross_entropy", "cross_entropy"},
           {Form::call, "loss.item", "item"},
           {Form::call, "x.to", "device"},
           {Form::call, "torch.empty", "uninitialised"},
           {Form::call, "torch.where", "where"},
           {Form::call, "x.view", "view"},
           {Form::call, "print", ""},
       }) {
    const Template* t = library->accept(site(c.form, c.callee));
    EXPECT_EQ(t ? t->name : "", c.name) << c.callee;
  }
}

}  // namespace
}  // namespace opguard
