"""A GPT of a layer or two, or of none, three training steps: a program for test_compile.py, which fills in SETTINGS.

Probed by hand as opguard-instrument would; bare, `og` is replaced by what takes no notice."""

PROGRAM = r'''
import hashlib, math, torch, torch.nn.functional as F
PROBED, BACKEND, DTYPE, SIZES, LAYERS, DYNAMIC = SETTINGS
if not PROBED:
    class Name:
        def __init__(self, x): self.x = x
        def iadd(self, y):
            x = self.x
            x += y
            return x
        def imul(self, y):
            x = self.x
            x *= y
            return x
    def og(boundary, x): return Name(x) if boundary.startswith("name.") else x
    og.aug = lambda boundary, x: x
torch.manual_seed(0)

class Attention(torch.nn.Module):
    def __init__(self, n, heads):
        super().__init__()
        self.qkv, self.out, self.heads = torch.nn.Linear(n, 3 * n), torch.nn.Linear(n, n), heads
    def forward(self, x):
        B, T, C = x.shape
        q, k, v = og("attn.split", og("attn.qkv", self.qkv)(x).split)(C, dim=2)
        q = og("attn.tq", og("attn.vq", q.view)(B, T, self.heads, C // self.heads).transpose)(1, 2)
        k = og("attn.tk", og("attn.vk", k.view)(B, T, self.heads, C // self.heads).transpose)(1, 2)
        v = og("attn.tv", og("attn.vv", v.view)(B, T, self.heads, C // self.heads).transpose)(1, 2)
        a = og("attn.scale", og("attn.qk", q) @ og("attn.kt", k.transpose)(-2, -1)) * (1.0 / math.sqrt(k.size(-1)))
        mask = og("attn.tril", torch.tril)(torch.ones(T, T, dtype=torch.bool, device=x.device))
        a = og("attn.fill", a.masked_fill)(~og("attn.not", mask), float("-inf"))
        a = og("attn.softmax", torch.softmax)(a, dim=-1)
        y = og("attn.av", a) @ v
        y = og("attn.join", og("attn.contiguous", y.transpose(1, 2).contiguous)().view)(B, T, C)
        return og("attn.out", self.out)(y)

class Block(torch.nn.Module):
    def __init__(self, n, heads):
        super().__init__()
        self.ln1, self.ln2, self.attn = torch.nn.LayerNorm(n), torch.nn.LayerNorm(n), Attention(n, heads)
        self.fc, self.proj = torch.nn.Linear(n, 2 * n), torch.nn.Linear(2 * n, n)
        self.gain = torch.nn.Parameter(torch.ones(n))
    def forward(self, x):
        x = og("block.res1", x) + og("block.attn", self.attn)(og("block.ln1", self.ln1)(x))
        h = og("block.gelu", F.gelu)(og("block.fc", self.fc)(og("block.ln2", self.ln2)(x)), approximate="tanh")
        h = og("block.proj", self.proj)(h)
        h = og("name.block.gain", h).imul(self.gain)
        h = og("name.block.res2", h).iadd(x)
        return h

class GPT(torch.nn.Module):
    def __init__(self, vocab=31, n=16, heads=2, T=8):
        super().__init__()
        self.wte, self.wpe = torch.nn.Embedding(vocab, n), torch.nn.Embedding(T, n)
        self.blocks = torch.nn.ModuleList(Block(n, heads) for _ in range(LAYERS))
        self.lnf, self.head = torch.nn.LayerNorm(n), torch.nn.Linear(n, vocab, bias=False)
    def forward(self, ids, targets):
        B, T = og("gpt.size", ids.size)()
        x = og("gpt.add", og("gpt.wte", self.wte)(ids)) + og("gpt.wpe", self.wpe)(torch.arange(0, T))
        scale = og("gpt.clone", torch.ones_like(x).clone)()
        og("gpt.set", scale)[:, 0] = 0.5
        og.aug("gpt.aug", scale)[:, 1] += 0.25
        og("gpt.mul_", x.mul_)(scale)
        for block in og("gpt.iter", self.blocks):
            x = og("gpt.block", block)(x)
        logits = og("gpt.head", self.head)(og("gpt.lnf", self.lnf)(x))
        flat = og("gpt.logits", logits.view)(-1, logits.size(-1))
        return og("gpt.loss", F.cross_entropy)(flat, og("gpt.targets", targets.reshape)(-1))

model = GPT().to(getattr(torch, DTYPE))
step = torch.compile(model, backend=BACKEND, fullgraph=True, dynamic=DYNAMIC) if BACKEND else model
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
for size in SIZES:
    ids, targets = torch.randint(31, (size, 8)), torch.randint(31, (size, 8))
    loss = step(ids, targets)
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    print("loss", loss.item().hex())
for name, p in model.named_parameters():
    print(name, hashlib.sha256(p.detach().view(torch.uint8).numpy().tobytes()).hexdigest())
if BACKEND:
    from opguard.record import settings
    print({k: v for k, v in settings.collect().items() if k.startswith("dynamo")})
'''


def gpt(probed, backend=None, dtype="float32", sizes=(4, 4, 4), layers=2, dynamic=None):
    return f"SETTINGS = {(probed, backend, dtype, sizes, layers, dynamic)!r}\n" + PROGRAM
