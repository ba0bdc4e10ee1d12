package cli

import (
	"fmt"
	"io"
	"os"

	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/token"
)

// Limits of a configuration file. Real ones have some hundred lines and three
// levels; what is far beyond is another file, or made to exhaust the parser.
const (
	maxConfigBytes = 1 << 18
	maxConfigDepth = 32
)

// readTokens reads a regular file of bearable size and depth and splits it.
func readTokens(path string) (token.Tokens, error) {
	wrap := func(err error) error { return &UsageError{Err: fmt.Errorf("read configuration: %w", err)} }
	st, err := os.Stat(path)
	if err != nil {
		return nil, wrap(err)
	}
	if !st.Mode().IsRegular() { // before it is opened: a pipe would wait for a writer
		return nil, Usagef("read configuration %s: it is no regular file", path)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, wrap(err)
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxConfigBytes+1))
	if err != nil {
		return nil, wrap(err)
	}
	if len(data) > maxConfigBytes {
		return nil, Usagef("read configuration %s: it has more than %d KB, so it is no configuration", path, maxConfigBytes>>10)
	}
	tokens := lexer.Tokenize(string(data))
	if t := tooDeep(tokens); t != nil {
		return nil, &fileError{path, t.Position.Line, fmt.Sprintf("more than %d levels inside each other", maxConfigDepth)}
	}
	return tokens, nil
}

// tooDeep returns the token at which collections nest too deeply, nil if none.
// Brackets, indentation and what nests within one line (dashes, question
// marks, anchors, tags) count.
func tooDeep(tokens token.Tokens) *token.Token {
	brackets, inLine, line := 0, 0, 0
	var columns []int // of the block keys and dashes around the present line
	for _, t := range tokens {
		if brackets == 0 && t.Position.Line != line {
			line, inLine = t.Position.Line, 0
			for len(columns) > 0 && columns[len(columns)-1] >= t.Position.Column {
				columns = columns[:len(columns)-1]
			}
			columns = append(columns, t.Position.Column)
		}
		switch t.Type {
		case token.SequenceStartType, token.MappingStartType:
			brackets++
		case token.SequenceEndType, token.MappingEndType:
			brackets = max(0, brackets-1)
		case token.CollectEntryType:
			inLine = 0
		case token.SequenceEntryType, token.MappingKeyType, token.AnchorType, token.TagType:
			inLine++
		case token.MappingValueType:
			if brackets == 0 {
				inLine++
			}
		}
		if brackets+inLine+len(columns) > maxConfigDepth {
			return t
		}
	}
	return nil
}
