package tokens

type byteTokenizer struct{}

// byteSeparator follows the 256 bytes.
const byteSeparator = 256

// Byte returns the tokenizer of bytes: ids 0 to 255 are the bytes, 256 is the
// separator.
func Byte() Tokenizer { return byteTokenizer{} }

func (byteTokenizer) Name() string     { return ByteName }
func (byteTokenizer) VocabSize() int   { return byteSeparator + 1 }
func (byteTokenizer) Separator() int32 { return byteSeparator }

func (byteTokenizer) Append(dst []int32, text []byte) []int32 {
	for _, b := range text {
		dst = append(dst, int32(b))
	}
	return dst
}

func (byteTokenizer) AppendBytes(dst []byte, ids ...int32) []byte {
	for _, id := range ids {
		if id >= 0 && id < byteSeparator {
			dst = append(dst, byte(id))
		}
	}
	return dst
}

func (byteTokenizer) Len(id int32) int {
	if id >= 0 && id < byteSeparator {
		return 1
	}
	return 0
}

func (byteTokenizer) Check([]byte) error  { return nil }
func (byteTokenizer) Cut(text []byte) int { return len(text) }
