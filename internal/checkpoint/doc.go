// Package checkpoint writes and reads the state of a training run: tensors as
// safetensors, everything else as JSON, whole or not at all.
//
// Layout of a run's folder of checkpoints:
//
//	index.json                what last, best and the kept ones are called
//	step-00000100/state.json  step, settings, values, a hash of every tensor
//	step-00000100/G.safetensors  the tensors of group G
//
// A checkpoint is written under a temporary name, synced, renamed, and becomes
// valid when index.json, replaced the same way, names it. A process killed at
// any moment thus leaves the previous checkpoint in force; Store.Clean removes
// what it left behind.
//
// Every byte is covered by a SHA-256: state.json by its own, headers and
// tensors by those in state.json. They are checked as the tensors are read: a
// few seconds for 2 GB, once per start, and no extra memory.
//
// A trainer lists its state once, by reference, in a Set; the same list serves
// saving, loading and their checks. Tensors go between their memory and the
// file directly, without a second copy.
//
// Numbers are little-endian; a Set panics on a big-endian machine.
package checkpoint
