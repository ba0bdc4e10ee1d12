"""One training step of the Hierarchical Reasoning Model in plain PyTorch: what our own step is timed against.

The model is arXiv 2506.21734 as sapientinc/HRM trains it; tensors carry that code's names without "model.inner.".
Shapes: B batch, P task slots, T grid tokens, S = P + T, D hidden size, N heads of K, F MLP width, V vocabulary.

Two things that PyTorch leaves open are options, so that a benchmark can give it the faster:
    cast       "call": a weight becomes bf16 wherever it is used, as in the reference; "step": once per training step
    attention  "bmm": batched products on [B*N, S, K]; "einsum": the same sums on [B, S, N, K]
"""
import math

import torch
import torch.nn.functional as F

IGNORE = -100


class Config:
    """Sizes and constants; names are the reference's."""

    def __init__(self, hidden_size, num_heads, H_layers, L_layers, seq_len, batch_size, H_cycles=2, L_cycles=2, expansion=4,
                 vocab_size=12, puzzle_emb_ndim=None, num_puzzle_identifiers=1000, pos_encodings="rope", halt_max_steps=16,
                 halt_exploration_prob=0.1, loss_type="stablemax_cross_entropy", rms_norm_eps=1e-5, rope_theta=10000.0, **_):
        self.D, self.N, self.K = hidden_size, num_heads, hidden_size // num_heads
        self.B, self.T, self.V = batch_size, seq_len, vocab_size
        self.layers = {"H": H_layers, "L": L_layers}
        self.H_cycles, self.L_cycles = H_cycles, L_cycles
        self.F = -(-round(expansion * hidden_size * 2 / 3) // 256) * 256  # up to a multiple of 256
        self.puzzle_dim = hidden_size if puzzle_emb_ndim is None else puzzle_emb_ndim
        self.P = -(-self.puzzle_dim // hidden_size)
        self.ids = num_puzzle_identifiers
        self.learned = pos_encodings == "learned"
        self.halt_max, self.explore = halt_max_steps, halt_exploration_prob
        self.stablemax = loss_type.startswith("stablemax")
        self.eps, self.theta = rms_norm_eps, rope_theta


def rms_norm(x, eps):
    f = x.float()
    return (f * torch.rsqrt(f.square().mean(-1, keepdim=True) + eps)).to(x.dtype)


def stablemax_loss(logits, labels):
    """-ln p[label] with p = s/sum s, s(x) = x + 1 above zero and 1/(1-x) below, in float64."""
    x = logits.double()
    s = torch.where(x < 0, 1 / (1 - x.clamp(max=0) + 1e-30), x.clamp(min=0) + 1)
    picked = s.gather(-1, labels.clamp(min=0).unsqueeze(-1)).squeeze(-1)
    return torch.where(labels == IGNORE, 0.0, s.sum(-1).log() - picked.log())


def softmax_loss(logits, labels):
    flat = F.cross_entropy(logits.float().flatten(0, 1), labels.flatten(), ignore_index=IGNORE, reduction="none")
    return flat.view_as(labels)


class Model:
    """Weights and the calls of one segment."""

    def __init__(self, c, dtype, cast="call", attention="bmm", seed=0):
        self.c, self.dtype, self.cast = c, dtype, cast
        self.attend = {"bmm": self.attend_bmm, "einsum": self.attend_einsum}[attention]
        g = torch.Generator().manual_seed(seed)

        def weight(rows, cols, std=None):
            w = torch.randn(rows, cols, generator=g).clamp_(-2, 2).mul_(std or cols**-0.5)
            return w.requires_grad_()

        self.p = {"embed_tokens.embedding_weight": weight(c.V, c.D, c.D**-0.5), "lm_head.weight": weight(c.V, c.D),
                  "q_head.weight": torch.zeros(2, c.D, requires_grad=True), "q_head.bias": torch.full((2,), -5.0, requires_grad=True)}
        if c.learned:
            self.p["embed_pos.embedding_weight"] = weight(c.P + c.T, c.D, c.D**-0.5)
        for module, layers in c.layers.items():
            for i in range(layers):
                at = f"{module}_level.layers.{i}."
                self.p[at + "self_attn.qkv_proj.weight"] = weight(3 * c.D, c.D)
                self.p[at + "self_attn.o_proj.weight"] = weight(c.D, c.D)
                self.p[at + "mlp.gate_up_proj.weight"] = weight(2 * c.F, c.D)
                self.p[at + "mlp.down_proj.weight"] = weight(c.D, c.F)
        self.table = torch.zeros(c.ids, c.puzzle_dim)
        self.init = {m: torch.randn(c.D, generator=g).clamp_(-2, 2).to(dtype) for m in "HL"}
        self.puzzle = None  # [B, puzzle_dim] leaf: the rows of table in this step
        self.cos = self.sin = None
        if not c.learned:
            angle = torch.outer(torch.arange(c.P + c.T).float(), 1 / c.theta ** (torch.arange(0, c.K, 2).float() / c.K))
            angle = torch.cat((angle, angle), -1).view(1, c.P + c.T, 1, 1, c.K)
            self.cos, self.sin = angle.cos(), angle.sin()
        self.cached = {}

    def new_step(self):
        """Forgets, or makes anew, the casts of the weights."""
        self.cached = {k: w.to(self.dtype) for k, w in self.p.items()} if self.cast == "step" else {}

    def w(self, name):
        return self.cached[name] if self.cached else self.p[name].to(self.dtype)

    def attend_bmm(self, qkv):
        """softmax(q k^T / sqrt K) v of qkv [B, S, 3, N, K], giving [B, S, D]."""
        B, S, _, N, K = qkv.shape
        q, k, v = qkv.permute(2, 0, 3, 1, 4).reshape(3, B * N, S, K)
        scores = torch.baddbmm(q.new_empty(()), q, k.transpose(1, 2), beta=0, alpha=K**-0.5)
        return torch.bmm(scores.softmax(-1), v).view(B, N, S, K).transpose(1, 2).reshape(B, S, N * K)

    def attend_einsum(self, qkv):
        B, S, _, N, K = qkv.shape
        q, k, v = qkv.unbind(2)
        scores = torch.einsum("bsnk,btnk->bnst", q * K**-0.5, k)
        return torch.einsum("bnst,btnk->bsnk", scores.softmax(-1), v).reshape(B, S, N * K)

    def block(self, at, x):
        c = self.c
        qkv = F.linear(x, self.w(at + "self_attn.qkv_proj.weight")).view(*x.shape[:2], 3, c.N, c.K)
        if self.cos is not None:
            qk = qkv[:, :, :2].float()
            a, b = qk.chunk(2, -1)
            qk = (qk * self.cos + torch.cat((-b, a), -1) * self.sin).to(x.dtype)
            qkv = torch.cat((qk, qkv[:, :, 2:]), 2)
        x = rms_norm(x + F.linear(self.attend(qkv), self.w(at + "self_attn.o_proj.weight")), c.eps)
        gate, up = F.linear(x, self.w(at + "mlp.gate_up_proj.weight")).chunk(2, -1)
        return rms_norm(x + F.linear(F.silu(gate) * up, self.w(at + "mlp.down_proj.weight")), c.eps)

    def module(self, name, x):
        for i in range(self.c.layers[name]):
            x = self.block(f"{name}_level.layers.{i}.", x)
        return x

    def embed(self, tokens, train):
        c = self.c
        x = F.embedding(tokens, self.w("embed_tokens.embedding_weight"))
        if c.P:
            e = F.pad(self.puzzle.to(self.dtype), (0, c.P * c.D - c.puzzle_dim)).view(-1, c.P, c.D)
            x = torch.cat((e, x), 1)
        if c.learned:
            x = math.sqrt(0.5) * (x + self.w("embed_pos.embedding_weight"))
        return math.sqrt(c.D) * x

    def q(self, zH):
        return F.linear(zH[:, 0], self.w("q_head.weight"), self.w("q_head.bias")).float()

    def segment(self, zH, zL, tokens, train=True):
        """Returns the new states, logits and q logits [B, 2]; only the last L and the last H call keep a gradient."""
        c = self.c
        with torch.set_grad_enabled(train):
            x = self.embed(tokens, train)
        with torch.no_grad():
            for h in range(c.H_cycles):
                last = h == c.H_cycles - 1
                for _ in range(c.L_cycles - last):
                    zL = self.module("L", zL + (zH + x))
                if not last:
                    zH = self.module("H", zH + zL)
        with torch.set_grad_enabled(train):
            zL = self.module("L", zL + (zH + x))
            zH = self.module("H", zH + zL)
            return zH, zL, F.linear(zH, self.w("lm_head.weight"))[:, c.P:], self.q(zH)


class Learner:
    """A model with its carry and optimizers; step() is what is timed."""

    def __init__(self, model, global_batch=None, lr=1e-4, puzzle_lr=1e-2, betas=(0.9, 0.95), decay=0.1, puzzle_decay=0.1):
        c = model.c
        self.model, self.scale = model, 1 / (global_batch or c.B)
        self.lr, self.puzzle_lr, self.betas, self.decay, self.puzzle_decay = lr, puzzle_lr, betas, decay, puzzle_decay
        self.t = 0
        self.m = {k: torch.zeros_like(w) for k, w in model.p.items()}
        self.v = {k: torch.zeros_like(w) for k, w in model.p.items()}
        self.zH = self.zL = torch.zeros(c.B, c.P + c.T, c.D, dtype=model.dtype)
        self.steps, self.halted = torch.zeros(c.B, dtype=torch.long), torch.ones(c.B, dtype=torch.bool)
        self.rows = None

    def refill(self, inputs, labels, ids):
        """Slots that halted take a new example and fresh states."""
        fresh, init = self.halted, self.model.init
        self.zH = torch.where(fresh.view(-1, 1, 1), init["H"], self.zH)
        self.zL = torch.where(fresh.view(-1, 1, 1), init["L"], self.zL)
        self.steps = torch.where(fresh, 0, self.steps) + 1
        old = self.rows or (inputs, labels, ids)
        self.rows = tuple(torch.where(fresh.view(-1, *[1] * (a.dim() - 1)), a, b) for a, b in zip((inputs, labels, ids), old))

    def forward(self, inputs, labels, ids):
        """Forward, losses, target and backward; returns the unscaled loss."""
        m, c = self.model, self.model.c
        self.refill(inputs, labels, ids)
        tokens, labels, ids = self.rows
        if c.P:
            m.puzzle = m.table[ids].requires_grad_()
        m.new_step()
        zH, zL, logits, q = m.segment(self.zH, self.zL, tokens)
        self.zH, self.zL = zH.detach(), zL.detach()
        halt, go = q[:, 0], q[:, 1]
        self.logits, self.q = logits.detach(), q.detach()
        with torch.no_grad():
            last = self.steps >= c.halt_max
            counts = (labels != IGNORE).sum(-1)
            exact = ((logits.argmax(-1) == labels) & (labels != IGNORE)).sum(-1) == counts
            self.halted, target = last, None
            if c.halt_max > 1:
                least = torch.where(torch.rand(c.B) < c.explore, torch.randint(2, c.halt_max + 1, (c.B,)), 0)
                self.halted = (last | (halt > go)) & (self.steps >= least)
                nq = m.segment(self.zH, self.zL, tokens, train=False)[-1]
                target = torch.where(last, nq[:, 0], nq.amax(-1)).sigmoid()
        token_loss = (stablemax_loss if c.stablemax else softmax_loss)(logits, labels)
        loss = (token_loss / counts.clamp(min=1).unsqueeze(-1)).sum()
        loss = loss + 0.5 * F.binary_cross_entropy_with_logits(halt, exact.float(), reduction="sum")
        if target is not None:
            loss = loss + 0.5 * F.binary_cross_entropy_with_logits(go, target, reduction="sum")
        self.target = target
        (loss * self.scale).backward()
        return loss.detach()

    @torch.no_grad()
    def update(self):
        """Sparse sign update of the task embeddings, then Adam-atan2 (architectures.md G.5 and G.6)."""
        self.t += 1
        m = self.model
        if m.c.P:
            ids, at = self.rows[2].unique(return_inverse=True)
            g = torch.zeros(len(ids), m.c.puzzle_dim).index_add_(0, at, m.puzzle.grad)
            m.table[ids] = m.table[ids].mul_(1 - self.puzzle_lr * self.puzzle_decay).sub_(g.sign_(), alpha=self.puzzle_lr)
        b1, b2 = self.betas
        rate, root = self.lr / (1 - b1**self.t), (1 - b2**self.t) ** -0.5
        for k, w in m.p.items():
            g, avg, sq = w.grad, self.m[k], self.v[k]
            avg.lerp_(g, 1 - b1)
            sq.mul_(b2).addcmul_(g, g, value=1 - b2)
            torch.sqrt(sq, out=g).mul_(root)  # the gradient's memory is free from here
            w.mul_(1 - self.lr * self.decay).sub_(torch.atan2(avg, g, out=g), alpha=rate)
            w.grad = None

    def step(self, inputs, labels, ids):
        loss = self.forward(inputs, labels, ids)
        self.update()
        return loss


def random_rows(c, seed=0):
    """A batch of random grids: inputs and labels [B, T], every tenth label ignored, ids [B]."""
    g = torch.Generator().manual_seed(seed)
    labels = torch.randint(0, c.V, (c.B, c.T), generator=g)
    labels[:, ::10] = IGNORE
    return torch.randint(0, c.V, (c.B, c.T), generator=g), labels, torch.randint(0, c.ids, (c.B,), generator=g)
