"""The peer as a process that works on request, so that a benchmark can take turns with it.

One JSON object per line in, one out ("error" in it when something failed):
    {"op": "open", "config": {...}, "precision": "bf16", "cast": "step", "attention": "bmm", ...}  a learner on random grids or,
                                                                  with "model": "lm" in the config, tokens; options: hrm.py, lm.py
    {"op": "step", "times": 1}                                   -> {"seconds": [...], "loss": x}   training steps
    {"op": "product", "precision": "bf16", "kind": "forward|dx|dw", "m": M, "n": N, "k": K, "times": 3} -> {"seconds": [...]}
    {"op": "gradients", "precision": "fp32", "config": {...}, "weights": FILE, "out": FILE}      one step's gradients
    {"op": "memory"}                                             -> {"peak_rss_bytes": n}
Threads come from the environment: OMP_NUM_THREADS and OPENBLAS_NUM_THREADS.
"""
import json
import os
import resource
import sys
import time

import torch
import torch.nn.functional as F

import hrm
import lm
import tensors

DTYPES = {"fp32": torch.float32, "bf16": torch.bfloat16}


class Server:
    def __init__(self):
        self.learner = self.rows = None
        self.products = {}

    def open(self, config, precision, cast="step", attention="bmm", table="dense", optimizer="single", **_):
        self.learner = self.rows = None
        if config.get("model") == "lm":
            c = lm.Config(**config)
            self.learner = lm.Learner(lm.Model(c, DTYPES[precision], cast, attention, table), optimizer)
            self.rows = lm.random_rows(c)
            return
        c = hrm.Config(**config)
        self.learner, self.rows = hrm.Learner(hrm.Model(c, DTYPES[precision], cast, attention)), hrm.random_rows(c)

    def step(self, times=1, **_):
        seconds = []
        for _ in range(times):
            start = time.perf_counter()
            loss = float(self.learner.step(*self.rows))
            seconds.append(time.perf_counter() - start)
        return {"seconds": seconds, "loss": loss}

    def product(self, precision, kind, m, n, k, times=1, **_):
        """y = x W^T, dx = dy W or dW = dy^T x, all of one type, on operands that stay the same."""
        key = (precision, m, n, k)
        if key not in self.products:
            make = lambda *shape: torch.randn(*shape).to(DTYPES[precision])
            self.products = {key: (make(m, k), make(m, n), make(n, k))}
        x, dy, w = self.products[key]
        call = {"forward": lambda: F.linear(x, w), "dx": lambda: torch.mm(dy, w), "dw": lambda: torch.mm(dy.t(), x)}[kind]
        seconds = []
        for _ in range(times):
            start = time.perf_counter()
            call()
            seconds.append(time.perf_counter() - start)
        return {"seconds": seconds}

    def gradients(self, config, precision, weights, out, **_):
        """Loads weights and batch by name, runs forward and backward of one fresh step, writes every gradient."""
        c = hrm.Config(**config)
        model = hrm.Model(c, DTYPES[precision])
        t = {k: torch.from_numpy(v) for k, v in tensors.load(weights).items()}
        for name, w in model.p.items():
            w.data.copy_(t[name].view_as(w))
        model.table.copy_(t["puzzle_emb.weights"].view_as(model.table))
        model.init = {m: t[m + "_init"].to(model.dtype) for m in "HL"}
        learner = hrm.Learner(model)
        rows = (t["inputs"].view(c.B, c.T), t["labels"].view(c.B, c.T), t["puzzle_identifiers"])
        loss = learner.forward(*(r.long() for r in rows))
        grads = {k: w.grad.numpy() for k, w in model.p.items()}
        grads["puzzle_emb.local_weights"] = model.puzzle.grad.numpy()
        tensors.save(out, grads)
        return {"loss": float(loss)}

    def memory(self, **_):
        return {"peak_rss_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024}


def main():
    threads = int(os.environ.get("OMP_NUM_THREADS", "1"))
    torch.set_num_threads(threads)
    server = Server()
    info = {"version": torch.__version__, "threads": torch.get_num_threads()}
    print(json.dumps(info), flush=True)
    for line in sys.stdin:
        try:
            request = json.loads(line)
            reply = getattr(server, request.pop("op"))(**request) or {}
        except Exception as e:  # the driver decides whether to go on
            reply = {"error": f"{type(e).__name__}: {e}"}
        print(json.dumps(reply), flush=True)


if __name__ == "__main__":
    main()
