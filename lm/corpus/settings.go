package corpus

import (
	"math"

	"deeploop/lm/tokens"
)

// Settings decide, with the input, every byte of a dataset.
type Settings struct {
	Tokenizer string `json:"tokenizer"` // byte, char or gpt2
	// TextKey is the key (JSON lines) or column (parquet) of the text.
	TextKey string `json:"text_key"`
	// ValFraction is the share of val: of documents, or of the text of a single
	// document. Negative: DefaultValFraction and SingleValFraction.
	ValFraction float64 `json:"val_fraction"`
	// Seed changes which documents are val.
	Seed uint64 `json:"seed"`
	// ShardTokens is the most tokens of a shard.
	ShardTokens int64 `json:"shard_tokens"`
}

// Defaults of Settings.
const (
	DefaultTextKey     = "text"
	DefaultValFraction = 0.005
	SingleValFraction  = 0.1 // of a single document, as nanoGPT does
	DefaultShardTokens = 100_000_000
	maxShardTokens     = 1 << 30 // headers count in int32
)

// DefaultSettings returns settings to change from.
func DefaultSettings() Settings {
	return Settings{Tokenizer: tokens.GPT2Name, TextKey: DefaultTextKey, ValFraction: -1, ShardTokens: DefaultShardTokens}
}

// Check reports settings that cannot be served.
func (s Settings) Check() error {
	switch s.Tokenizer {
	case tokens.ByteName, tokens.CharName, tokens.GPT2Name:
	default:
		return inputErrorf("prepare: tokenizer is %q, expected byte, char or gpt2", s.Tokenizer)
	}
	switch {
	case s.TextKey == "":
		return inputErrorf("prepare: text-key is empty, expected the key or column of the text")
	case math.IsNaN(s.ValFraction) || s.ValFraction >= 1:
		return inputErrorf("prepare: val-fraction is %v, expected 0 to below 1", s.ValFraction)
	case s.ShardTokens < 1 || s.ShardTokens > maxShardTokens:
		return inputErrorf("prepare: shard-tokens is %d, expected 1 to %d", s.ShardTokens, maxShardTokens)
	}
	return nil
}
