// Package corpus prepares text for training and reads what it prepared.
//
// Prepare reads documents (text files, folders, JSON lines, parquet, each
// plain, gzip or zstd), tokenizes them and writes a dataset folder:
//
//	train_000.bin ...  tokens, in the shards of llm.c
//	val_000.bin ...
//	tokenizer.json     see package tokens
//	manifest.json      counts, settings, SHA-256 of each file; written last
//
// A shard is 256 little-endian int32 (magic, version, tokens; the rest zero)
// and then the tokens, little-endian: uint16 (magic 20240520, version 1), or
// uint32 (20240801, version 7) for vocabularies of more than 65,536.
//
// In a corpus of several documents the tokenizer's separator stands before
// each of them. Documents go to train or val by a hash of their text; of a
// single document the last part is val, and no separator is written.
//
// Open reads such folders, and token files of llm.c and nanoGPT.
package corpus

import "fmt"

// InputError is a request or an input that cannot be served: programs answer
// it with exit code 2.
type InputError struct{ Err error }

func (e *InputError) Error() string { return e.Err.Error() }
func (e *InputError) Unwrap() error { return e.Err }

// BadInput marks the error as the input's fault, not the program's.
func (e *InputError) BadInput() bool { return true }

func inputErrorf(format string, args ...any) error {
	return &InputError{Err: fmt.Errorf(format, args...)}
}
