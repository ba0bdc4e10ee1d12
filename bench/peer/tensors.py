"""The safetensors format with numpy alone: an 8-byte little-endian header length, a JSON header, raw little-endian tensors."""
import json
import struct

import numpy as np

DTYPES = {"F64": "<f8", "F32": "<f4", "I64": "<i8", "I32": "<i4", "U32": "<u4", "U8": "u1", "BOOL": "?"}


def load(path):
    """Returns {name: array}."""
    with open(path, "rb") as f:
        (length,) = struct.unpack("<Q", f.read(8))
        header = json.loads(f.read(length))
        data = f.read()
    header.pop("__metadata__", None)
    tensors = {}
    for name, t in header.items():
        begin, end = t["data_offsets"]
        tensors[name] = np.frombuffer(data[begin:end], DTYPES[t["dtype"]]).reshape(t["shape"]).copy()
    return tensors


def save(path, tensors):
    """Writes {name: float32 array}."""
    header, at = {}, 0
    for name, a in tensors.items():
        header[name] = {"dtype": "F32", "shape": list(a.shape), "data_offsets": [at, at + 4 * a.size]}
        at += 4 * a.size
    head = json.dumps(header).encode()
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(head)) + head)
        for a in tensors.values():
            f.write(np.ascontiguousarray(a, "<f4").tobytes())
