"""Checks hrm.py against recorded reference numbers: python3 check.py GOLDEN_DIR

For every hrm_*.json of the folder: logits, q logits, states, loss and halting of each training step, the gradient of the
first, and the weights after each update. The tolerances are the folder's own (README.md there, section 1). Prints one line
per case and exits with 1 when something is off.
"""
import glob
import json
import os
import sys

import numpy as np
import torch

import hrm
import tensors

PREFIX = "model.inner."


class Case:
    def __init__(self, path, cast, attention):
        with open(path) as f:
            self.json = json.load(f)
        self.t = tensors.load(path[:-len("json")] + "safetensors")
        self.worst = {}
        o = self.json["optim"]
        c = hrm.Config(loss_type=self.json["loss_type"], rms_norm_eps=self.json["rms_norm_eps"],
                       rope_theta=self.json["rope_theta"], **self.json["arch"])
        self.model = hrm.Model(c, torch.float32, cast, attention)
        self.learner = hrm.Learner(self.model, self.json["global_batch_size"], o["lr"], o["puzzle_emb_lr"],
                                   (o["beta1"], o["beta2"]), o["weight_decay"], o["puzzle_emb_weight_decay"])
        for k, v in self.tensors("init." + PREFIX):
            to = self.weight(k)
            with torch.no_grad():
                to.copy_(v)

    def tensors(self, prefix):
        return [(k[len(prefix):], torch.from_numpy(v)) for k, v in self.t.items() if k.startswith(prefix)]

    def weight(self, name):
        m = self.model
        return {"H_init": m.init["H"], "L_init": m.init["L"], "puzzle_emb.weights": m.table}.get(name, m.p.get(name))

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

    def run(self):
        L, m = self.learner, self.model
        relative = lambda a, b: (a - b).norm() / (b.norm() + 1e-12)
        beyond = lambda a, b: ((a - b).abs() > 1e-5).float().mean()  # share of weights off by more than 1e-5
        for step in self.json["train_steps"]:
            n = step["step"]
            at = f"step{n}."
            get = lambda k: torch.from_numpy(self.t[at + k])
            loss = L.forward(*(get("batch." + k).long() for k in ("inputs", "labels", "puzzle_identifiers")))
            tolerance = 5e-5 if n == 1 else 5e-4
            for k, have in {"logits": L.logits, "q_halt_logits": L.q[:, 0], "q_continue_logits": L.q[:, 1],
                            "target_q_continue": L.target, "z_H": L.zH, "z_L": L.zL}.items():
                self.off(k, (have - get(k)).abs().max(), tolerance)
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


def main(folder):
    paths = sorted(glob.glob(os.path.join(folder, "hrm_*.json")))
    if not paths:
        sys.exit(f"check: no hrm_*.json in {folder}")
    good = True
    for path in paths:
        for cast, attention in (("call", "bmm"), ("step", "einsum")):
            worst = Case(path, cast, attention).run()
            bad = {k: v for k, v in worst.items() if not v <= 1}
            good = good and not bad
            most = max(worst, key=worst.get)
            print(f"{os.path.basename(path)[:-5]} cast={cast} attention={attention}: "
                  + ("off: " + ", ".join(f"{k} {v:.3g} tolerances" for k, v in bad.items()) if bad
                     else f"ok, farthest {most} at {worst[most]:.2g} of its tolerance"))
    sys.exit(not good)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(sys.argv[1])
