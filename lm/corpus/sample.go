package corpus

import (
	"bytes"
	_ "embed"
	"math"

	"deeploop/lm/tokens"
)

//go:generate go run ./samplegen -out sample.txt

// sampleText is made by samplegen: plain English of a small grammar.
//
//go:embed sample.txt
var sampleText []byte

// Sample returns the embedded text as a dataset of the tokenizer char or byte:
// the first 90 % are train, the rest val. It has no files, and Close does
// nothing.
func Sample(tokenizer string) (*Dataset, error) {
	var t tokens.Tokenizer
	switch tokenizer {
	case tokens.ByteName:
		t = tokens.Byte()
	case tokens.CharName:
		var set tokens.CharSet
		set.Add(sampleText)
		var err error
		if t, err = set.Tokenizer(false); err != nil {
			return nil, err
		}
	default:
		return nil, inputErrorf("open the sample text: tokenizer is %q, expected char or byte", tokenizer)
	}
	cut := int(math.Floor(float64(len(sampleText)) * (1 - SingleValFraction)))
	d := &Dataset{Path: "the embedded sample text", Format: FormatSample, Tokenizer: t}
	d.Manifest = Manifest{Format: manifestFormat, Version: manifestVersion, Tokenizer: t.Name(), VocabSize: t.VocabSize(), Separator: t.Separator()}
	var err error
	if d.Train, d.Manifest.Train, err = d.memorySplit("train", sampleText[:cut]); err != nil {
		return nil, err
	}
	if d.Val, d.Manifest.Val, err = d.memorySplit("val", sampleText[cut:]); err != nil {
		return nil, err
	}
	d.Hash = datasetHash(d.Manifest.Files)
	d.Manifest.DatasetHash = d.Hash
	return d, nil
}

// memorySplit is a split of one shard in memory.
func (d *Dataset) memorySplit(name string, text []byte) (*Split, Counts, error) {
	ids := d.Tokenizer.Append(nil, text)
	b := appendHeader(nil, int64(len(ids)), 2)
	for _, id := range ids {
		b = append(b, byte(id), byte(id>>8))
	}
	sh, err := sniff(name, bytes.NewReader(b), int64(len(b)))
	if err != nil {
		return nil, Counts{}, err
	}
	s := &Split{Name: name}
	s.add(sh, d.Tokenizer.VocabSize())
	d.Manifest.Files = append(d.Manifest.Files, FileInfo{Name: name, Bytes: sh.size, SHA256: hashBytes(b), Tokens: sh.count})
	return s, Counts{Documents: 1, Bytes: int64(len(text)), Tokens: sh.count}, nil
}
