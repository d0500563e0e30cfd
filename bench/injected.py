"""Faults of the same kinds as the shared ones, at other places of minitrain: how often `opguard diff` names the statement.

  injected.py --cases DIR --venvs DIR [--opguard FILE] [--only NAME,...] [--work DIR] [--json FILE]

A fault is an edit of one place; its truth is written down beside it: the statements that may be named, by side, and the kinds.
Controls change the sources and no value. Finished entries are kept under --work while tool and fault stay the same.
"""
import argparse
import ast
import json
import shutil
from dataclasses import dataclass
from pathlib import Path

from accuracy import ROOT, answer_of, tool_digest
from cases import IDENTICAL, Entry, copy_tree, make_environment
from table import print_row

M, E, O, D = "minigpt/model/", "minigpt/engine/", "minigpt/optim/", "minigpt/data/"


@dataclass
class Fault:
    name: str
    edits: list  # (file, old text, new text); each old text stands once
    right: list  # (side or both, file, text on the statement's line)
    kinds: str  # acceptable, apart by blanks; "" for a control
    mode: str = "plain"  # plain, resume, ddp
    sets: str = ""


TOKENS = ("ab", E + "trainer.py", "tokens = sum(")
EMBEDDING = ("ab", M + "embedding.py", "return F.embedding(")
MASK = ("ab", M + "gpt.py", "return (future |")
INDICES = [("ab", D + "loader.py", text) for text in ("order = torch.randperm", "start = (at", "return order[start", "np.take(")]
DATA = [TOKENS, EMBEDDING, MASK, *INDICES]

FAULTS = [
    # scalar: the same operator with another argument
    Fault("norm_eps", [(M + "norm.py", "eps=1e-6", "eps=1e-5")], [("ab", M + "norm.py", "rstd = ")], "scalar"),
    Fault("gelu_exact", [(M + "mlp.py", 'approximate="tanh"', 'approximate="none"')], [("ab", M + "mlp.py", "h = F.gelu(")], "scalar"),
    Fault("attention_scale", [(M + "attention.py", "math.sqrt(self.head_dim)", "math.sqrt(C)")],
          [("ab", M + "attention.py", "scores = torch.matmul("), ("ab", M + "attention.py", "scale = 1.0 /")], "scalar"),
    Fault("mask_future", [(M + "gpt.py", ".triu(1)", ".triu(2)")], [("ab", M + "gpt.py", "future = ")], "scalar"),
    Fault("loss_mean", [(M + "gpt.py", 'reduction="sum"', 'reduction="mean"')], [("ab", M + "gpt.py", "loss_sum = ")], "scalar structure"),
    Fault("bias_correction", [(O + "adamw.py", "math.sqrt(1 - b2 ** t)", "math.sqrt(1 - b2 ** (t + 1))")],
          [("ab", O + "adamw.py", "torch._foreach_div_(denom")], "scalar"),
    Fault("clip_eps", [(O + "clip.py", "(norm + 1e-6)", "(norm + 1e-2)")], [("ab", O + "clip.py", "scale = ")], "scalar"),
    Fault("ema_decay", [(O + "ema.py", "1 - self.decay", "self.decay")], [("ab", O + "ema.py", "torch._foreach_lerp_(self.shadow")], "scalar"),
    Fault("warmup", [(O + "schedule.py", "(self.count + 1)", "(self.count + 2)")],
          [("ab", O + "adamw.py", "torch._foreach_mul_(params"), ("ab", O + "adamw.py", "torch._foreach_addcdiv_(params"), ("ab", O + "schedule.py", "return c.lr")],
          "scalar"),
    Fault("expert_init", [(M + "moe.py", "nn.init.normal_(w, std=0.02)", "nn.init.normal_(w, std=0.03)")], [("ab", M + "moe.py", "nn.init.normal_(w")], "scalar"),
    Fault("mlp_dropout", [(M + "mlp.py", "self.dropout = cfg.dropout", "self.dropout = cfg.dropout / 2")], [("ab", M + "mlp.py", "return F.dropout(")], "scalar"),
    Fault("rope_base", [("minigpt/config.py", "rope_base: float = 10000.0", "rope_base: float = 20000.0")], [("ab", M + "rope.py", "inv_freq = ")], "scalar"),
    # structure: another operator, dtype or shape
    Fault("norm_bf16", [(M + "norm.py", "h = x.float()", "h = x")], [("ab", M + "norm.py", "h = x"), ("ab", M + "norm.py", "rstd = ")], "structure"),
    Fault("softmax_bf16", [(M + "attention.py", "k.transpose(-2, -1)).float() * scale", "k.transpose(-2, -1)) * scale")],
          [("ab", M + "attention.py", "scores = torch.matmul("), ("b", M + "attention.py", "probs = ")], "structure"),
    Fault("router_weights", [(M + "moe.py", "        weight = weight / weight.sum(-1, keepdim=True)\n", "")],
          [("a", M + "moe.py", "weight = weight /"), ("b", M + "moe.py", "token, scale =")], "structure input"),
    Fault("topk_logits", [(M + "moe.py", "gate.topk(", "logits.topk(")], [("ab", M + "moe.py", "weight, expert = ")], "input value structure"),
    Fault("token_order", [(M + "moe.py", ".repeat_interleave(self.top_k)", ".repeat(self.top_k)")], [("ab", M + "moe.py", "token = torch.arange(")], "structure"),
    Fault("router_bf16", [(M + "moe.py", "F.linear(flat.float(), self.router.weight)", "F.linear(flat, self.router.weight.to(flat.dtype)).float()")],
          [("ab", M + "moe.py", "logits = F.linear(")], "structure"),
    Fault("aux_detached", [(M + "moe.py", "gate.mean(0)", "gate.detach().mean(0)")], [("ab", M + "moe.py", "self.aux_loss = self.n_expert")], "structure input value"),
    Fault("adam_eps_inside", [(O + "adamw.py", "denom = torch._foreach_sqrt(v)", 'denom = torch._foreach_sqrt(torch._foreach_add(v, group["eps"]))'),
                              (O + "adamw.py", '            torch._foreach_add_(denom, group["eps"])\n', "")],
          [("ab", O + "adamw.py", "denom = "), ("a", O + "adamw.py", "torch._foreach_add_(denom")], "structure"),
    Fault("decay_norms", [(O + "adamw.py", "p.ndim >= 2", "p.ndim >= 1"), (O + "adamw.py", "p.ndim < 2", "p.ndim < 1")],
          [("ab", O + "adamw.py", "torch._foreach_mul_(params"), ("ab", O + "adamw.py", "decay = ")], "structure scalar"),
    Fault("untied_head", [(M + "gpt.py", "        self.head.weight = self.embed.weight\n", "")],
          [("a", M + "gpt.py", "self.head.weight = "), ("ab", M + "gpt.py", "logits = "), ("ab", M + "gpt.py", "self.head = nn.Linear"),
           ("ab", O + "adamw.py", "decay = ")], "structure input value"),
    Fault("positions_ignored", [(M + "rope.py", "cos[positions][:, None], sin[positions][:, None]", "cos[None, None, : positions.shape[1]], sin[None, None, : positions.shape[1]]")],
          [("ab", M + "rope.py", "c, s = ")], "structure"),
    Fault("accumulate_twice", [(E + "trainer.py", "0.01 * aux / self.cfg.micro_batches", "0.01 * aux")], [("ab", E + "trainer.py", "losses.append(")], "structure"),
    # backward and recomputation
    Fault("recompute_scale", [(E + "recompute.py", "keepdim=True)) * ctx.scale", "keepdim=True))")], [("ab", E + "recompute.py", "ds = probs")], "structure", sets="recompute=core"),
    Fault("recompute_mask", [(E + "recompute.py", "ctx.scale, ctx.index = scale, STORE.current", "ctx.scale, ctx.index = scale, 0")],
          [("ab", E + "recompute.py", "probs = torch.softmax(scores.masked_fill(mask, float(\"-inf\")), dim=-1)\n"), ("ab", E + "recompute.py", "mask = STORE.get"),
           ("ab", E + "recompute.py", "ctx.scale, ctx.index")], "input value", sets="recompute=core"),
    Fault("recompute_probs", [(E + "recompute.py", "dv = torch.matmul(probs.to(v.dtype)", "dv = torch.matmul(probs.bfloat16().to(v.dtype)")],
          [("ab", E + "recompute.py", "dv = ")], "structure", sets="recompute=core compute_dtype=float32"),
    # resume
    Fault("resume_schedule", [(E + "checkpoint.py", '    schedule.load_state_dict(state["schedule"])\n', "")],
          [("ab", O + "adamw.py", "torch._foreach_mul_(params"), ("ab", O + "adamw.py", "torch._foreach_addcdiv_(params"), ("a", E + "checkpoint.py", "schedule.load_state_dict")],
          "scalar", "resume"),
    Fault("resume_ema", [(E + "checkpoint.py", '    ema.load_state_dict(state["ema"])\n', "")],
          [("ab", O + "ema.py", "torch._foreach_lerp_(self.shadow"), ("a", O + "ema.py", "torch._foreach_copy_(self.shadow, state"), ("a", E + "checkpoint.py", "ema.load_state_dict"),
           ("ab", O + "ema.py", "self.shadow = [")], "input structure value", "resume"),
    Fault("resume_position", [(D + "loader.py", 'self.position = state["position"]', 'self.position = state["position"] + 1')], DATA, "input value scalar", "resume"),
    Fault("resume_moments", [(E + "checkpoint.py", '    optimizer.load_state_dict(state["optimizer"])\n', "")],
          [("ab", O + "adamw.py", "torch._foreach_lerp_(m"), ("ab", O + "adamw.py", "torch._foreach_mul_(v"), ("a", E + "checkpoint.py", "optimizer.load_state_dict"),
           ("b", O + "adamw.py", 'state["m"], state["v"] = ')], "input structure scalar value", "resume"),
    # races
    Fault("queue_depth", [(D + "loader.py", "queue.Queue(maxsize=1)", "queue.Queue(maxsize=2)")],
          [TOKENS, EMBEDDING, MASK, ("b", D + "loader.py", "self.ready, self.thread = "), ("a", D + "loader.py", "self.ready, self.thread = "), ("ab", D + "loader.py", "].unbind(1)")],
          "race input"),
    Fault("gate_scribbled", [(M + "moe.py", "        weight, expert = gate.topk", "        gate.detach().numpy()[:1, :1] *= 2\n        weight, expert = gate.topk")],
          [("ab", M + "moe.py", "gate = torch.softmax("), ("ab", M + "moe.py", "weight, expert = gate.topk("), ("b", M + "moe.py", "gate.detach().numpy()")], "race input structure"),
    Fault("logits_scribbled", [(M + "gpt.py", "        loss_sum = F.cross", "        logits.detach().numpy()[0, 0, 0] += 1\n        loss_sum = F.cross")],
          [("ab", M + "gpt.py", "logits = "), ("ab", M + "gpt.py", "loss_sum = "), ("b", M + "gpt.py", "logits.detach().numpy()")], "race input structure"),
    # ranks
    Fault("rank_data", [(D + "loader.py", "(at * self.world + self.rank) * self.batch", "(at * self.world + self.rank // 2) * self.batch")], DATA, "input value scalar", "ddp"),
    Fault("reduce_max", [(E + "ddp.py", "dist.all_reduce(flat)", "dist.all_reduce(flat, op=dist.ReduceOp.MAX)")], [("ab", E + "ddp.py", "dist.all_reduce(flat")], "scalar", "ddp"),
    Fault("not_averaged", [(E + "ddp.py", "    flat = flat / dist.get_world_size()\n", "")], [("a", E + "ddp.py", "flat = flat /"), ("b", E + "ddp.py", "for g, piece in"), ("b", E + "ddp.py", "g.copy_(")],
          "structure input", "ddp"),
    Fault("rank_weight", [(E + "ddp.py", "flat = torch.cat([g.reshape(-1) for g in grads])", "flat = torch.cat([g.reshape(-1) for g in grads]) * (1 + 0.5 * dist.get_rank())")],
          [("b", E + "ddp.py", "flat = torch.cat(")], "structure", "ddp"),
    Fault("rank_init", [(E + "ddp.py", "            dist.broadcast(p.data, 0)\n", "            p.data.mul_(1 + 0.125 * dist.get_rank())\n")],
          [("a", E + "ddp.py", "dist.broadcast("), ("b", E + "ddp.py", "p.data.mul_(")], "structure", "ddp"),
    Fault("rank_mask", [(M + "gpt.py", "        mask = self.document_mask(doc)\n",
                         "        mask = self.document_mask(doc)\n        if torch.distributed.is_initialized() and torch.distributed.get_rank() == 1:\n            mask = mask.logical_not().logical_not().triu(1)\n")],
          [("b", M + "gpt.py", "mask = mask.logical_not()")], "structure", "ddp"),
    # value: the same operator on the same tensors, another result
    Fault("trainer_seed", [(E + "trainer.py", "cfg.seed + 1 + self.rank", "cfg.seed + 2 + self.rank")],
          [("ab", E + "trainer.py", "torch.manual_seed(cfg.seed +"), ("ab", M + "attention.py", "return F.dropout(")], "value scalar"),
    Fault("extra_draw", [(E + "trainer.py", "        tokens = sum(", "        torch.rand(1)\n        tokens = sum(")],
          [("b", E + "trainer.py", "torch.rand(1)"), ("ab", M + "attention.py", "return F.dropout(")], "value structure"),
    # controls
    Fault("control_foreach", [(O + "adamw.py", "            torch._foreach_mul_(v, b2)\n", "            for each in v:\n                each.mul_(b2)\n")], [], ""),
    Fault("control_views", [(M + "attention.py", "y = y.transpose(1, 2).reshape(B, T, C)", "y = y.permute(0, 2, 1, 3).contiguous().view(B, T, C)")], [], ""),
    Fault("control_mask", [(M + "gpt.py", "(future | (doc[:, :, None] != doc[:, None, :]))[:, None]", "torch.logical_or(doc.unsqueeze(2).ne(doc.unsqueeze(1)), future).unsqueeze(1)")], [], ""),
    Fault("control_ddp", [(E + "ddp.py", "flat = torch.cat([g.reshape(-1) for g in grads])", "flat = torch.nn.utils.parameters_to_vector(grads)")], [], "", "ddp"),
]


def read(tree, path):
    return (tree / path).read_text()


def inject(fault, good, bad):
    shutil.rmtree(bad, ignore_errors=True)
    shutil.copytree(good, bad)
    for path, old, new in fault.edits:
        text = read(bad, path)
        if text.count(old) != 1:
            raise SystemExit(f"injected.py: error: {fault.name}: {path}: {old!r} stands {text.count(old)} times")
        (bad / path).write_text(text.replace(old, new))


def statements_and_functions(fault, trees):
    """The places of fault.right as cases' expect.json has them, and the functions around them."""
    statements, functions = [], []
    for sides, path, wanted in fault.right:
        found = False
        for side in sides:
            text = read(trees[side], path)
            if wanted not in text:
                continue  # only the other side has it
            found = True
            line = text[: text.index(wanted)].count("\n") + 1
            spans = [(n.lineno, n.end_lineno, n) for n in ast.walk(ast.parse(text)) if isinstance(n, ast.stmt) and n.lineno <= line <= n.end_lineno]
            first, last, _ = min(spans, key=lambda s: s[1] - s[0])
            at = {"side": side, "package": "", "file": path}
            statements.append({**at, "first_line": first, "last_line": last})
            around = [s for s in spans if isinstance(s[2], (ast.FunctionDef, ast.AsyncFunctionDef))]
            if around:
                first, last, _ = min(around, key=lambda s: s[1] - s[0])
                functions.append({**at, "first_line": first, "last_line": last})
        if not found:
            raise SystemExit(f"injected.py: error: {fault.name}: no {wanted!r} in {path}")
    return statements, functions


def entry_of(fault, case, base, work):
    place = work / "trees" / fault.name
    trees = {"a": place / "a", "b": place / "b"}
    copy_tree(case, trees["a"])
    inject(fault, trees["a"], trees["b"])
    statements, functions = statements_and_functions(fault, trees)
    sets = f" --set {fault.sets}" if fault.sets else ""

    def command(side):
        if fault.mode == "ddp":
            return f"torchrun --standalone --nproc-per-node 2 train.py --steps 2{sets}"
        if fault.mode == "resume":
            ckpt = place / f"{side}.ckpt"
            return f"sh -c 'python train.py --steps 2 --save {ckpt}{sets} && python train.py --steps 2 --resume {ckpt}{sets}'"
        return f"python train.py --steps 3{sets}"

    expect = {"verdict": "diverged", "kinds": fault.kinds.split(), "statements": statements, "functions": functions}
    return Entry(name=fault.name, suite="injected" if fault.kinds else "control", tree_a=trees["a"], tree_b=trees["b"],
                 run_a=command("a"), run_b=command("b"), expect=expect if fault.kinds else dict(IDENTICAL), case=case, path=str(base / "bin"))


def summary(results):
    faults = [r for r in results if r["suite"] == "injected"]
    controls = [r for r in results if r["suite"] == "control"]
    by_class = {c: sum(r["class"] == c for r in faults) for c in ("exact", "near", "candidate", "wrong")}
    kinds = sum(r["kind_right"] is True for r in faults)
    losses = sum(r["losses_equal"] is not False for r in results)
    return (f"injected: {by_class['exact']} of {len(faults)} at the statement, {by_class['near']} in its function, {by_class['candidate']} among the candidates, "
            f"{by_class['wrong']} wrong; kind {kinds} of {len(faults)}; controls {sum(r['class'] == 'right' for r in controls)} of {len(controls)}; "
            f"losses bit-equal {losses} of {len(results)}")


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--cases", type=Path, default=ROOT.parent / "shared" / "cases")
    p.add_argument("--venvs", type=Path, default=ROOT / "build" / "venvs")
    p.add_argument("--opguard", type=Path, default=ROOT / "build" / "release" / "src" / "cli" / "opguard")
    p.add_argument("--work", type=Path, default=ROOT / "build" / "injected")
    p.add_argument("--only", default="", help="names, or their beginnings, separated by commas")
    p.add_argument("--timeout", type=float, default=900, help="seconds for one command")
    p.add_argument("--json", type=Path, help="every answer")
    o = p.parse_args()
    o.cases, o.venvs, o.work, o.opguard = (x.resolve() for x in (o.cases, o.venvs, o.work, o.opguard))
    case, base = o.cases / "minitrain", make_environment(o.cases / "minitrain", o.venvs)
    digest, results = tool_digest(o.opguard), []
    for fault in FAULTS:
        if o.only and not fault.name.startswith(tuple(o.only.split(","))):
            continue
        # With its own truth: a fault that was changed is run again.
        key = f"{digest} {fault!r}"
        path = o.work / "results" / f"{fault.name}.json"
        kept = json.loads(path.read_text()) if path.is_file() else {}
        if kept.get("tool") != key:
            kept = {**answer_of(entry_of(fault, case, base, o.work), o.opguard, o.work / "runs" / fault.name, o.timeout), "tool": key}
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(json.dumps(kept, indent=1))
        results.append(kept)
        print_row(kept)
    print(summary(results))
    if o.json:
        o.json.write_text(json.dumps(results, indent=1))


if __name__ == "__main__":
    main()
