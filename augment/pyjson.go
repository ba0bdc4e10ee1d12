package augment

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// appendPyString appends s as Python's json.dump writes it: ASCII only.
func appendPyString(b []byte, s string) []byte {
	b = append(b, '"')
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == '"' || r == '\\':
			b = append(b, '\\', byte(r))
		case r == '\n':
			b = append(b, '\\', 'n')
		case r == '\r':
			b = append(b, '\\', 'r')
		case r == '\t':
			b = append(b, '\\', 't')
		case r == '\b':
			b = append(b, '\\', 'b')
		case r == '\f':
			b = append(b, '\\', 'f')
		case r >= ' ' && r <= '~':
			b = append(b, byte(r))
		case r > 0xffff:
			hi, lo := utf16.EncodeRune(r)
			b = fmt.Appendf(b, `\u%04x\u%04x`, hi, lo)
		default:
			b = fmt.Appendf(b, `\u%04x`, r)
		}
		i += n
	}
	return append(b, '"')
}

// pyFloat formats v as Python does: shortest digits, ".0" for whole numbers.
// It serves values of ordinary size.
func pyFloat(v float64) string {
	s := strconv.FormatFloat(v, 'f', -1, 64)
	if !strings.Contains(s, ".") {
		s += ".0"
	}
	return s
}

// Metadata is dataset.json of a split, with the reference's keys.
type Metadata struct {
	PadID                int      `json:"pad_id"`
	IgnoreLabelID        *int     `json:"ignore_label_id"`
	BlankIdentifierID    int      `json:"blank_identifier_id"`
	VocabSize            int      `json:"vocab_size"`
	SeqLen               int      `json:"seq_len"`
	NumPuzzleIdentifiers int      `json:"num_puzzle_identifiers"`
	TotalGroups          int      `json:"total_groups"`
	MeanPuzzleExamples   float64  `json:"mean_puzzle_examples"`
	Sets                 []string `json:"sets"`
}

// datasetJSON writes the metadata of a split with Python's separators.
func datasetJSON(s *splitPlan, seqLen, identifiers int) []byte {
	return fmt.Appendf(nil, `{"pad_id": %d, "ignore_label_id": %d, "blank_identifier_id": 0, "vocab_size": %d, "seq_len": %d, `+
		`"num_puzzle_identifiers": %d, "total_groups": %d, "mean_puzzle_examples": %s, "sets": ["all"]}`,
		PadToken, PadToken, VocabSize, seqLen, identifiers, len(s.groups), pyFloat(s.meanPuzzleExamples()))
}

// json returns identifiers.json: the names in the order of their
// numbers.
func (n *identifierMap) json() []byte {
	b := make([]byte, 0, 32*n.count())
	b = append(b, '[')
	b = appendPyString(b, blankName)
	for _, c := range n.order[1:] {
		b = append(b, ", "...)
		b = appendPyString(b, n.name(c))
	}
	return append(b, ']')
}
