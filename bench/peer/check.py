"""Checks hrm.py and lm.py against recorded reference numbers: python3 check.py GOLDEN_DIR

For every hrm_*.json of the folder: logits, q logits, states, loss and halting of each training step, the gradient of the
first, and the weights after each update. For every lm_*.json: logits, states after each round, loss and gradients of the
first batch, then losses, norms of gradients and the last weights of its training steps. The tolerances are the folder's own
(README.md there, sections 1 and 6). Prints one line per case and exits with 1 when something is off.
"""
import glob
import json
import os
import sys

import numpy as np
import torch

import hrm
import lm
import tensors

PREFIX = "model.inner."
lm.BLOCK = 7  # so that the cases' 24 tokens are several blocks

relative = lambda a, b: (a - b).norm() / (b.norm() + 1e-12)
farthest = lambda a, b: (a - b).abs().max()
beyond = lambda a, b: ((a - b).abs() > 1e-5).float().mean()  # share of weights off by more than 1e-5


class Case:
    """One recorded case; the kinds below build the model from self.json and run() it."""

    def __init__(self, path):
        with open(path) as f:
            self.json = json.load(f)
        self.t = tensors.load(path[:-len("json")] + "safetensors")
        self.worst = {}

    def get(self, name):
        return torch.from_numpy(self.t[name])

    def tensors(self, prefix):
        return [(k[len(prefix):], torch.from_numpy(v)) for k, v in self.t.items() if k.startswith(prefix)]

    def load(self, prefix, weight):
        with torch.no_grad():
            for k, v in self.tensors(prefix):
                weight(k).copy_(v)

    def off(self, what, error, tolerance):
        """Keeps the largest error in units of its tolerance."""
        self.worst[what] = max(self.worst.get(what, 0.0), float(error) / tolerance)

    def compare(self, what, prefix, get, measure, tolerance):
        """Compares stored tensors, or their samples of 256 entries, with get(name)."""
        n = 0
        for name, want in self.tensors(prefix):
            name, _, part = name.partition("#")
            have = get(name).detach().float()
            if part == "stats":
                continue
            if part == "sample":
                have = have.flatten()[torch.arange(len(want)) * have.numel() // len(want)]
            self.off(what, measure(have, want), tolerance)
            n += 1
        assert n, "no " + prefix


class HRM(Case):
    WAYS = [{"cast": "call", "attention": "bmm"}, {"cast": "step", "attention": "einsum"}]

    def __init__(self, path, cast, attention):
        super().__init__(path)
        o = self.json["optim"]
        c = hrm.Config(loss_type=self.json["loss_type"], rms_norm_eps=self.json["rms_norm_eps"],
                       rope_theta=self.json["rope_theta"], **self.json["arch"])
        self.model = hrm.Model(c, torch.float32, cast, attention)
        self.learner = hrm.Learner(self.model, self.json["global_batch_size"], o["lr"], o["puzzle_emb_lr"],
                                   (o["beta1"], o["beta2"]), o["weight_decay"], o["puzzle_emb_weight_decay"])
        self.load("init." + PREFIX, self.weight)

    def weight(self, name):
        m = self.model
        return {"H_init": m.init["H"], "L_init": m.init["L"], "puzzle_emb.weights": m.table}.get(name, m.p.get(name))

    def run(self):
        L, m = self.learner, self.model
        for step in self.json["train_steps"]:
            n = step["step"]
            at = f"step{n}."
            get = lambda k: self.get(at + k)
            loss = L.forward(*(get("batch." + k).long() for k in ("inputs", "labels", "puzzle_identifiers")))
            tolerance = 5e-5 if n == 1 else 5e-4
            for k, have in {"logits": L.logits, "q_halt_logits": L.q[:, 0], "q_continue_logits": L.q[:, 1],
                            "target_q_continue": L.target, "z_H": L.zH, "z_L": L.zL}.items():
                self.off(k, farthest(have, get(k)), tolerance)
            self.off("loss", abs(loss / step["loss"] - 1), 1e-5)
            self.off("halted", (L.halted != get("halted").bool()).sum() + (L.steps != get("steps")).sum(), 0.5)
            if n == 1:
                grads = {k: w.grad for k, w in m.p.items()}
                if m.c.P:
                    grads["puzzle_emb.local_weights"] = m.puzzle.grad
                self.compare("gradients", "grad1." + PREFIX, grads.get, relative, 1e-4)
            L.lr, L.puzzle_lr = step["adam_lr"], step.get("puzzle_emb_lr") or 0
            L.update()
            self.compare("weights", f"after{n}.{PREFIX}", self.weight, beyond, 0.001)
        return self.worst


class LM(Case):
    WAYS = [{"cast": "call", "attention": "bmm", "table": "dense", "optimizer": "single"},
            {"cast": "step", "attention": "blocks", "table": "sparse", "optimizer": "foreach"}]

    def __init__(self, path, optimizer, **options):
        super().__init__(path)
        j, o = self.json, self.json["adamw"]
        c = lm.Config(j["d"], j["heads"], j["K"], j["R"], j["T"], j["B"], j["vocab"], j["ffn"], j["placement"], j["p"],
                      j["qk_norm"], j["final_norm"], j["eps"], j["rope_base"])
        self.model = lm.Model(c, torch.float32, **options)
        self.learner = lm.Learner(self.model, optimizer, o["lr"], o["betas"], o["eps"], o["weight_decay"], o["clip"])
        self.load("init.", self.model.p.get)

    def batch(self, n):
        tokens = self.get("tokens")[n].long()
        return tokens[:, :-1].flatten(), tokens[:, 1:].flatten()

    def run(self):
        L, m = self.learner, self.model
        largest = lambda a, b: farthest(a, b) / b.abs().max()
        with torch.no_grad():
            m.new_step()
            x = m.embed(self.batch(0)[0])
            for r in range(m.c.loops):
                x = m.round(x)
                want = self.get("states")[r]
                self.off("states", largest(x.view_as(want), want), 1e-5)
            want = self.get("logits")
            self.off("logits", largest(m.logits(x).view_as(want), want), 1e-5)
        self.off("loss", abs(L.forward(*self.batch(0)) / self.json["loss"] - 1), 1e-6)
        self.compare("gradients", "grad.", lambda k: m.p[k].grad, relative, 2e-5)
        for n, (loss, norm) in enumerate(zip(self.json["losses"], self.json["grad_norms"]), 1):
            self.off("losses", abs(L.forward(*self.batch(n)) / loss - 1), 1e-5)
            self.off("norms", abs(L.update() / norm - 1), 1e-4)
        self.compare("weights", "after10.", m.p.get, beyond, 0.001)
        return self.worst


def main(folder):
    cases = [(path, kind) for kind in (HRM, LM) for path in sorted(glob.glob(os.path.join(folder, kind.__name__.lower() + "_*.json")))]
    if not cases:
        sys.exit(f"check: no hrm_*.json and no lm_*.json in {folder}")
    good = True
    for path, kind in cases:
        for way in kind.WAYS:
            worst = kind(path, **way).run()
            bad = {k: v for k, v in worst.items() if not v <= 1}
            good = good and not bad
            most = max(worst, key=worst.get)
            print(f"{os.path.basename(path)[:-5]} {' '.join(f'{k}={v}' for k, v in way.items())}: "
                  + ("off: " + ", ".join(f"{k} {v:.3g} tolerances" for k, v in bad.items()) if bad
                     else f"ok, farthest {most} at {worst[most]:.2g} of its tolerance"))
    sys.exit(not good)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(sys.argv[1])
