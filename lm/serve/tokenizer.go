package serve

import (
	"bytes"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"unicode/utf8"
)

// separatorText names the document separator, as GPT-2 does. In prompts it is
// ordinary text.
const separatorText = "<|endoftext|>"

// tokenizerInfo describes the tokenizer in the words of Hugging Face's
// configuration files.
func (s *Server) tokenizerInfo(w *response, _ *http.Request) error {
	var separator, id any
	if sep := s.tok.Separator(); sep >= 0 {
		separator, id = separatorText, sep
	}
	return w.json(http.StatusOK, map[string]any{
		"tokenizer_class":  s.tok.Name(),
		"vocab_size":       s.vocabulary,
		"model_max_length": s.decoder.Context(),
		"bos_token":        separator,
		"eos_token":        separator,
		"pad_token":        nil,
		"eos_token_id":     id,
		"chat_template":    nil,
	})
}

// tokenize answers with the tokens of a text. The separator's name alone is
// the separator: lm-evaluation-harness asks for its id so.
func (s *Server) tokenize(w *response, r *http.Request) error {
	var req struct {
		Prompt *string `json:"prompt"`
	}
	ids := []int32{}
	err := s.parse(w, r, &req, func() error {
		switch {
		case req.Prompt == nil:
			return badRequest("prompt", `"prompt" is missing, expected a string`)
		case *req.Prompt == separatorText && s.tok.Separator() >= 0:
			ids = append(ids, s.tok.Separator())
			return nil
		}
		if err := s.tok.Check([]byte(*req.Prompt)); err != nil {
			return badRequest("prompt", "the prompt cannot be tokenized: %v", err)
		}
		ids = s.tok.Append(ids, []byte(*req.Prompt))
		return nil
	})
	if err != nil {
		return err
	}
	return w.json(http.StatusOK, map[string]any{"count": len(ids), "max_model_len": s.decoder.Context(), "tokens": ids})
}

// detokenize answers with the text of tokens; bytes that are not UTF-8 become
// U+FFFD.
func (s *Server) detokenize(w *response, r *http.Request) error {
	var req struct {
		Tokens idList `json:"tokens"`
	}
	err := s.parse(w, r, &req, func() error {
		if req.Tokens == nil {
			return badRequest("tokens", `"tokens" is missing, expected a list of token ids`)
		}
		return s.checkIDs("tokens", "tokens", req.Tokens)
	})
	if err != nil {
		return err
	}
	var b []byte
	for _, id := range req.Tokens {
		if id == s.tok.Separator() {
			b = append(b, separatorText...)
		} else {
			b = s.tok.AppendBytes(b, id)
		}
	}
	return w.json(http.StatusOK, map[string]string{"prompt": string(b)})
}

// checkIDs refuses ids of a field that the vocabulary does not have; what names
// the list.
func (s *Server) checkIDs(field, what string, ids []int32) error {
	for i, id := range ids {
		if id < 0 || int(id) >= s.vocabulary {
			return badRequest(field, "%s[%d] is %d, expected token ids from 0 to %d", what, i, id, s.vocabulary-1)
		}
	}
	return nil
}

// idList is a list of token ids, strictly: encoding/json would take null for 0.
type idList []int32

func (l *idList) UnmarshalJSON(b []byte) error {
	inner := bytes.TrimSpace(b)
	if string(inner) == "null" {
		return nil
	}
	if inner[0] != '[' {
		return badRequest("", "found %s, expected a list of token ids", brief(inner))
	}
	inner = bytes.TrimSpace(inner[1 : len(inner)-1])
	*l = idList{}
	for i := 0; len(inner) > 0; i++ {
		word, rest, more := bytes.Cut(inner, []byte{','})
		word = bytes.TrimSpace(word)
		id, err := strconv.ParseInt(string(word), 10, 32)
		if err != nil {
			return badRequest("", "entry %d of the list is %s, expected a token id", i, brief(word))
		}
		*l = append(*l, int32(id))
		inner = rest
		if !more {
			break
		}
	}
	return nil
}

// brief is the beginning of a piece of JSON, for errors.
func brief(b []byte) string {
	const most = 40
	s := string(b)
	if len(s) <= most {
		return s
	}
	cut := most
	for !utf8.RuneStart(s[cut]) {
		cut--
	}
	return s[:cut] + "..."
}

// tokenText names a token in lists of log-probabilities. A token that is not
// a whole piece of text has its bytes, as in bytes:\xe2\x82.
func (s *Server) tokenText(id int32) string {
	if id == s.tok.Separator() {
		return separatorText
	}
	b := s.tok.AppendBytes(nil, id)
	if utf8.Valid(b) {
		return string(b)
	}
	var t strings.Builder
	t.WriteString("bytes:")
	for _, c := range b {
		fmt.Fprintf(&t, `\x%02x`, c)
	}
	return t.String()
}
