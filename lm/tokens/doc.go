// Package tokens turns text into tokens and back. Any bytes are text, valid
// UTF-8 or not, and come back exactly.
//
// Kinds: byte (a token per byte), char (a token per character of a corpus) and
// gpt2 (the byte-level BPE of GPT-2). What looks like a special token in a text
// is ordinary text; the separator of documents is an id of its own that no text
// gives.
package tokens
