package predictions

import (
	"fmt"
	"strconv"
)

// format marks the files this package wrote.
const (
	formatName = "deeploop predictions "
	format     = formatName + "1"
)

// Meta says where predictions come from. The zero value of a field means
// "not known".
type Meta struct {
	Dataset          string // folder of the dataset, as given to the evaluation
	DatasetHash      string // hash over the dataset's files
	Checkpoint       string // file of the weights
	CheckpointDigest string // hash of the weights
	Step             int64  // training step of the weights
	Weights          string // "ema" or "raw"
	HaltSteps        int    // passes per row
	Augmentations    int    // augmented copies asked for beside the original, -1 = all
}

// encode returns the header metadata of a file.
func (m Meta) encode() map[string]string {
	return map[string]string{
		"format":            format,
		"dataset":           m.Dataset,
		"dataset_hash":      m.DatasetHash,
		"checkpoint":        m.Checkpoint,
		"checkpoint_digest": m.CheckpointDigest,
		"step":              strconv.FormatInt(m.Step, 10),
		"weights":           m.Weights,
		"halt_steps":        strconv.Itoa(m.HaltSteps),
		"augmentations":     strconv.Itoa(m.Augmentations),
	}
}

// decodeMeta reads header metadata. A file without our format line is a
// foreign one, which is legal: its Meta is zero.
func decodeMeta(h map[string]string) (Meta, error) {
	var m Meta
	switch h["format"] {
	case "":
		return m, nil
	case format:
	default:
		return m, fmt.Errorf("its format is %q, this program reads %q: use the version that wrote it", h["format"], format)
	}
	m.Dataset, m.DatasetHash = h["dataset"], h["dataset_hash"]
	m.Checkpoint, m.CheckpointDigest = h["checkpoint"], h["checkpoint_digest"]
	m.Weights = h["weights"]
	var err error
	if m.Step, err = strconv.ParseInt(h["step"], 10, 64); err != nil {
		return m, fmt.Errorf("metadata step is %q, expected a number", h["step"])
	}
	if m.HaltSteps, err = strconv.Atoi(h["halt_steps"]); err != nil {
		return m, fmt.Errorf("metadata halt_steps is %q, expected a number", h["halt_steps"])
	}
	if m.Augmentations, err = strconv.Atoi(h["augmentations"]); err != nil {
		return m, fmt.Errorf("metadata augmentations is %q, expected a number", h["augmentations"])
	}
	return m, nil
}
