// Package tensorboard writes scalars as TensorBoard reads them: event files,
// which are records in the framing of TFRecord that each hold a protocol buffer
// Event (tensorflow/core/util/event.proto). It writes files and nothing else.
//
// A folder below the one that `tensorboard --logdir` is given is a run there,
// and all event files in it, in the order of their names, are its history. Names
// of scalars are EVENT/METRIC, as in train/loss and eval/loss: TensorBoard
// groups charts by what stands before the slash.
package tensorboard
