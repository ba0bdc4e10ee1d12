package cli

import (
	"fmt"
	"io"
	"regexp"
	"strings"
)

// WriteYAML writes every key of c, sections indented, as a file that --config
// reads back to the same values. Lines of comment come first.
func (s *Schema[T]) WriteYAML(w io.Writer, c T, comment string) error {
	var b strings.Builder
	for line := range strings.Lines(comment) {
		b.WriteString("# " + strings.TrimSuffix(line, "\n") + "\n")
	}
	var open []string
	for _, f := range s.fields {
		parts := strings.Split(f.Key, ".")
		group := parts[:len(parts)-1]
		shared := 0
		for shared < len(group) && shared < len(open) && group[shared] == open[shared] {
			shared++
		}
		for i := shared; i < len(group); i++ {
			fmt.Fprintf(&b, "%s%s:\n", strings.Repeat("  ", i), group[i])
		}
		open = group
		text := s.Text(c, f)
		if f.kind == kindString {
			text = yamlString(text)
		}
		fmt.Fprintf(&b, "%s%s: %s\n", strings.Repeat("  ", len(group)), parts[len(group)], text)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

var (
	plainYAML = regexp.MustCompile(`^[A-Za-z_./][A-Za-z0-9_./@-]*$`)
	otherYAML = regexp.MustCompile(`(?i)^(true|false|yes|no|on|off|y|n|null|\.?inf|\.?nan|infinity|\.[0-9].*|[.-]+)$`)
)

// yamlString quotes a string unless every YAML reader takes it for one.
func yamlString(s string) string {
	if plainYAML.MatchString(s) && !otherYAML.MatchString(s) {
		return s
	}
	return jsonQuote(s)
}

// Args is the inverse of AddFlags and Resolve: flags that turn base into c,
// with none that Follow would set by itself.
func (s *Settings[T]) Args(c, base T) []string {
	chosen := map[string]bool{}
	for _, f := range s.fields {
		if !s.equal(c, base, f) {
			chosen[f.Key] = true
		}
	}
	for wrong := s.differing(c, base, chosen); len(wrong) > 0; wrong = s.differing(c, base, chosen) {
		for _, key := range wrong {
			chosen[key] = true // Follow changed it
		}
	}
	var args []string
	for _, f := range s.fields {
		if !chosen[f.Key] {
			continue
		}
		delete(chosen, f.Key)
		if len(s.differing(c, base, chosen)) > 0 {
			chosen[f.Key] = true
			args = append(args, "--"+f.Flag+"="+s.flagText(c, f))
		}
	}
	return args
}

// flagText is Text, lists of simple words without brackets and quotes.
func (s *Schema[T]) flagText(c T, f *Field) string {
	text := s.Text(c, f)
	if f.kind != kindList {
		return text
	}
	words, err := parseList(text)
	for _, w := range words {
		if err != nil || !plainWord.MatchString(w) {
			return text
		}
	}
	if len(words) == 0 {
		return text
	}
	return strings.Join(words, ",")
}

var plainWord = regexp.MustCompile(`^[A-Za-z0-9_.]+$`)

// differing returns the keys in which base with the chosen keys of c applied,
// and Follow after that, is not c.
func (s *Settings[T]) differing(c, base T, chosen map[string]bool) []string {
	trial := base
	for _, f := range s.fields {
		if chosen[f.Key] {
			s.copyField(&trial, c, f)
		}
	}
	if s.Follow != nil {
		s.Follow(&trial, base, func(key string) bool { return chosen[key] })
	}
	var keys []string
	for _, f := range s.fields {
		if !s.equal(trial, c, f) {
			keys = append(keys, f.Key)
		}
	}
	return keys
}

var plainShell = regexp.MustCompile(`^[A-Za-z0-9_./:=,@%+-]+$`)

// ShellLine joins arguments into a line a POSIX shell splits back into them.
func ShellLine(args ...string) string {
	quoted := make([]string, len(args))
	for i, a := range args {
		quoted[i] = a
		if !plainShell.MatchString(a) {
			quoted[i] = "'" + strings.ReplaceAll(a, "'", `'\''`) + "'"
		}
	}
	return strings.Join(quoted, " ")
}
