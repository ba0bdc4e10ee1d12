"""Makes the recorded files beside it: python3 make.py (PyTorch 1.13)."""
import collections, os, sys, torch

here = sys.argv[1] if len(sys.argv) > 1 else os.path.dirname(os.path.abspath(__file__))
path = lambda name: os.path.join(here, name)


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = torch.nn.Linear(3, 2)


ramp = torch.arange(24, dtype=torch.float32)
kinds = dict(f64=torch.float64, f16=torch.float16, bf16=torch.bfloat16, i64=torch.int64, i32=torch.int32,
             i16=torch.int16, i8=torch.int8, u8=torch.uint8)
all_kinds = {"f32": ramp.view(2, 3, 4) / 8}
all_kinds.update({k: (ramp / 8).view(4, 6).to(t) for k, t in kinds.items()})
all_kinds["bool"] = (ramp % 3 == 0).view(24)
torch.save(all_kinds, path("kinds.pt"))

shared = torch.arange(12, dtype=torch.float32)
views = collections.OrderedDict(
    whole=shared, tail=shared[5:], square=shared[:9].view(3, 3), turned=shared.view(3, 4).t(), every=shared[1::3],
    scalar=torch.tensor(2.5), empty=torch.zeros(0, 7), parameter=torch.nn.Parameter(torch.ones(2, 2)))
torch.save(views, path("views.pt"))

net = Net()
with torch.no_grad():
    net.lin.weight.copy_(torch.arange(6.0).view(2, 3))
    net.lin.bias.copy_(torch.tensor([-1.0, 1.0]))
torch.save(net.state_dict(), path("state.pt"))
torch.save({"model": net.state_dict(), "step": 7}, path("nested.pt"))
torch.save(net, path("module.pt"))
torch.save(torch.ones(2), path("tensor.pt"))
torch.save(net.state_dict(), path("old.pt"), _use_new_zipfile_serialization=False)
torch.save(net.state_dict(), path("protocol4.pt"), pickle_protocol=4)
torch.jit.script(torch.nn.Linear(2, 2)).save(path("script.pt"))
