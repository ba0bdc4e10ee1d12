"""One training step of the looped language model in plain PyTorch: what our own step is timed against.

The model is arXiv 2607.13491's (architectures.md section A), its optimizer torch.optim.AdamW behind clip_grad_norm_. Shapes: B
batch, T tokens, D hidden size, N heads of K, F MLP width, V vocabulary.

What PyTorch leaves open are options, so that a benchmark can give it the fastest:
    cast       "step": a weight becomes bf16 once per training step; "call": wherever it is used; "autocast": torch.autocast decides
    attention  "bmm": batched products on [B*N, T, K], the mask added within the first; "blocks": the same for blocks of queries,
               each with the keys before its end, which leaves out most of the masked half
    optimizer  "single" or "foreach": how AdamW walks over tensors (1.13 has no fused one on CPU)
    table      "dense" or "sparse": the embedding's own gradient before the head's is added
"""
import contextlib

import torch
import torch.nn.functional as F

BLOCK = 256  # queries of attention "blocks"


class Config:
    """Sizes and constants; the placement is one of prenorm, postnorm, deepnorm and deeploop."""

    def __init__(self, hidden_size, num_heads, layers, loops, seq_len, batch_size, vocab_size, ffn=None, placement="deeploop",
                 p=0.5, qk_norm=True, final_norm=None, rms_norm_eps=1e-6, rope_theta=10000.0, **_):
        self.D, self.N, self.K = hidden_size, num_heads, hidden_size // num_heads
        self.layers, self.loops = layers, loops
        self.B, self.T, self.V, self.F = batch_size, seq_len, vocab_size, ffn or 8 * hidden_size // 3
        self.inner = placement in ("prenorm", "deeploop")
        self.outer = placement != "prenorm"
        scaled = placement in ("deepnorm", "deeploop")
        self.alpha = (2 * layers * loops) ** p if scaled else 1.0
        self.beta = (8 * layers * loops) ** -p if scaled else 1.0
        self.qk_norm = qk_norm
        self.final = placement == "prenorm" if final_norm is None else final_norm
        self.eps, self.theta = rms_norm_eps, rope_theta


def rms(x, gain, eps):
    """RMSNorm of the last axis, in float32; a gain that is no vector broadcasts."""
    f = x.float()
    return f * torch.rsqrt(f.square().mean(-1, keepdim=True) + eps) * gain


class Model:
    """Weights by name, and the forward pass."""

    def __init__(self, c, dtype, cast="step", attention="bmm", table="dense", seed=0):
        self.c, self.dtype, self.cast, self.table = c, dtype, cast, table
        self.attend = {"bmm": self.attend_whole, "blocks": self.attend_blocks}[attention]
        g = torch.Generator().manual_seed(seed)
        weight = lambda rows, cols, std: torch.randn(rows, cols, generator=g).mul_(std).requires_grad_()
        gain = lambda width: torch.ones(width, requires_grad=True)
        self.p = {"embed.weight": weight(c.V, c.D, 0.02), "embed_norm.gain": gain(c.D)}
        std = 0.5 * c.D**-0.5
        for i in range(c.layers):
            at = f"blocks.{i}."
            self.p[at + "attn.qkv.weight"] = weight(3 * c.D, c.D, std)
            with torch.no_grad():
                self.p[at + "attn.qkv.weight"][2 * c.D:] *= c.beta
            self.p[at + "attn.out.weight"] = weight(c.D, c.D, std * c.beta)
            self.p[at + "mlp.gate_up.weight"] = weight(2 * c.F, c.D, std * c.beta)
            self.p[at + "mlp.down.weight"] = weight(c.D, c.F, std * c.beta)
            for part in ("attn", "mlp"):
                if c.inner:
                    self.p[f"{at}{part}.norm_in.gain"] = gain(c.D)
                if c.outer:
                    self.p[f"{at}{part}.norm_out.gain"] = gain(c.D)
            if c.qk_norm:
                self.p[at + "attn.q_norm.gain"], self.p[at + "attn.k_norm.gain"] = gain(c.K), gain(c.K)
        if c.final:
            self.p["final_norm.gain"] = gain(c.D)
        angle = torch.outer(torch.arange(c.T).float(), 1 / c.theta ** (torch.arange(0, c.K, 2).float() / c.K))
        angle = torch.cat((angle, angle), -1).view(1, c.T, 1, 1, c.K)
        self.cos, self.sin = angle.cos(), angle.sin()
        self.mask = torch.full((c.T, c.T), -torch.inf, dtype=dtype).triu(1)
        self.cached = {}

    def new_step(self):
        """Forgets, or makes anew, the casts of the weights."""
        self.cached = {k: w.to(self.dtype) for k, w in self.p.items() if k.endswith("weight")} if self.cast == "step" else {}

    def linear(self, x, name):
        if self.cast == "autocast":
            return F.linear(x, self.p[name])
        return F.linear(x, self.cached[name] if self.cached else self.p[name].to(self.dtype))

    def norm(self, x, name):
        return rms(x, self.p[name], self.c.eps).to(self.dtype)

    def some(self, q, k, v, first):
        """Queries first, first+1, ... on the keys [B*N, n, K] up to the last of them."""
        end = first + q.shape[1]
        mask = self.mask[first:end, :end]
        scores = torch.baddbmm(mask, q, k[:, :end].transpose(1, 2), alpha=self.c.K**-0.5)
        return torch.bmm(scores.softmax(-1), v[:, :end])

    def attend_whole(self, q, k, v):
        return self.some(q, k, v, 0)

    def attend_blocks(self, q, k, v):
        return torch.cat([self.some(q[:, i:i + BLOCK], k, v, i) for i in range(0, q.shape[1], BLOCK)], 1)

    def attention(self, at, x):
        c = self.c
        qkv = self.linear(x, at + "qkv.weight").view(c.B, c.T, 3, c.N, c.K)
        qk = qkv[:, :, :2].float()
        if c.qk_norm:
            qk = rms(qk, torch.stack((self.p[at + "q_norm.gain"], self.p[at + "k_norm.gain"])).unsqueeze(1), c.eps)
        a, b = qk.chunk(2, -1)
        qk = (qk * self.cos + torch.cat((-b, a), -1) * self.sin).to(self.dtype)
        q, k = qk.permute(2, 0, 3, 1, 4).reshape(2, c.B * c.N, c.T, c.K)
        v = qkv[:, :, 2].transpose(1, 2).reshape(c.B * c.N, c.T, c.K)
        o = self.attend(q, k, v).view(c.B, c.N, c.T, c.K).transpose(1, 2).reshape(c.B * c.T, c.D)
        return self.linear(o, at + "out.weight")

    def mlp(self, at, x):
        gate, up = self.linear(x, at + "gate_up.weight").chunk(2, -1)
        return self.linear(F.silu(gate) * up, at + "down.weight")

    def sublayer(self, at, f, x):
        c = self.c
        z = f(at, self.norm(x, at + "norm_in.gain") if c.inner else x)
        z = torch.add(z, x, alpha=c.alpha)
        return self.norm(z, at + "norm_out.gain") if c.outer else z

    def embed(self, tokens):
        x = F.embedding(tokens, self.p["embed.weight"], sparse=self.table == "sparse")
        return self.norm(x, "embed_norm.gain")

    def round(self, x):
        for i in range(self.c.layers):
            x = self.sublayer(f"blocks.{i}.attn.", self.attention, x)
            x = self.sublayer(f"blocks.{i}.mlp.", self.mlp, x)
        return x

    def logits(self, x):
        if self.c.final:
            x = self.norm(x, "final_norm.gain")
        return self.linear(x, "embed.weight")

    def forward(self, tokens):
        """Logits [B*T, V] of tokens [B*T]."""
        self.new_step()
        x = self.embed(tokens)
        for _ in range(self.c.loops):
            x = self.round(x)
        return self.logits(x)


class Learner:
    """A model with its optimizer; step() is what is timed."""

    def __init__(self, model, optimizer="single", lr=1e-4, betas=(0.9, 0.95), eps=1e-8, decay=0.1, clip=1.0):
        self.model, self.clip = model, clip
        matrices, gains = ([w for w in model.p.values() if w.dim() == n] for n in (2, 1))
        groups = [{"params": matrices, "weight_decay": decay}, {"params": gains, "weight_decay": 0.0}]
        self.optimizer = torch.optim.AdamW(groups, lr=lr, betas=betas, eps=eps, foreach=optimizer == "foreach")

    def forward(self, tokens, labels):
        """Loss and backward pass; returns the mean cross entropy."""
        self.optimizer.zero_grad(set_to_none=True)
        auto = self.model.cast == "autocast"
        with torch.autocast("cpu", dtype=self.model.dtype) if auto else contextlib.nullcontext():
            logits = self.model.forward(tokens)
        loss = F.cross_entropy(logits.float(), labels)
        del logits
        loss.backward()
        return loss.detach()

    def update(self):
        """Clips and steps; returns the gradients' norm before clipping."""
        self.model.cached = {}
        norm = torch.nn.utils.clip_grad_norm_(self.model.p.values(), self.clip)
        self.optimizer.step()
        return norm

    def step(self, tokens, labels):
        loss = self.forward(tokens, labels)
        self.update()
        return loss


def random_rows(c, seed=0):
    """A batch of random tokens and labels, [B*T] both."""
    g = torch.Generator().manual_seed(seed)
    return tuple(torch.randint(0, c.V, (c.B * c.T,), generator=g) for _ in range(2))
