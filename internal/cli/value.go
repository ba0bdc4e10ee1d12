package cli

import (
	"encoding/json"
	"errors"
	"math"
	"reflect"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml"
)

// kind is the type of a key.
type kind uint8

const (
	kindString kind = iota
	kindBool
	kindInt
	kindFloat
	kindList
)

func kindOf(t reflect.Type) (kind, bool) {
	switch {
	case t.Kind() == reflect.String:
		return kindString, true
	case t.Kind() == reflect.Bool:
		return kindBool, true
	case t.Kind() == reflect.Int:
		return kindInt, true
	case t.Kind() == reflect.Float64:
		return kindFloat, true
	case t == reflect.TypeFor[[]string]():
		return kindList, true
	}
	return 0, false
}

// String is the type as pflag's help shows it.
func (k kind) String() string {
	return [...]string{"string", "bool", "int", "float", "list"}[k]
}

// What an error says was expected.
var (
	errWantBool  = errors.New("expected true or false")
	errWantInt   = errors.New("expected a whole number")
	errWantFloat = errors.New("expected a finite number")
	errWantList  = errors.New("expected a list of strings, as in [a, b]")
)

// setValue parses text into v. Whole numbers may be written as floats (1e5,
// 2000.0) as long as nothing is lost.
func setValue(v reflect.Value, text string) error {
	k, _ := kindOf(v.Type())
	switch k {
	case kindString:
		v.SetString(text)
	case kindBool:
		switch text {
		case "true", "True", "TRUE":
			v.SetBool(true)
		case "false", "False", "FALSE":
			v.SetBool(false)
		default:
			return errWantBool
		}
	case kindInt:
		n, err := parseInt(text)
		if err != nil {
			return err
		}
		v.SetInt(n)
	case kindFloat:
		f, err := parseFloat(text)
		if err != nil {
			return err
		}
		v.SetFloat(f)
	case kindList:
		list, err := parseList(text)
		if err != nil {
			return err
		}
		v.Set(reflect.ValueOf(list))
	}
	return nil
}

func parseInt(text string) (int64, error) {
	digits := strings.TrimLeft(text, "+-")
	if len(digits) > 1 && digits[0] == '0' && !strings.ContainsAny(digits, ".eE") {
		return 0, errWantInt // 010 is octal to some readers and ten to others
	}
	if n, err := strconv.ParseInt(text, 10, strconv.IntSize); err == nil {
		return n, nil
	}
	f, err := parseFloat(text)
	if err != nil || f != math.Trunc(f) || math.Abs(f) > 1<<53 {
		return 0, errWantInt
	}
	return int64(f), nil
}

func parseFloat(text string) (float64, error) {
	f, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsInf(f, 0) || math.IsNaN(f) || strings.ContainsAny(text, "xX_") {
		return 0, errWantFloat
	}
	return f, nil
}

// parseList reads [a, "b,c"] as YAML, anything else as comma-separated.
func parseList(text string) ([]string, error) {
	if !strings.HasPrefix(text, "[") {
		if text == "" {
			return nil, nil
		}
		return strings.Split(text, ","), nil
	}
	var list []string
	if err := yaml.Unmarshal([]byte(text), &list); err != nil {
		return nil, errWantList
	}
	if len(list) == 0 {
		return nil, nil
	}
	return list, nil
}

// formatValue is the inverse of setValue; the shortest text that reads back
// to the same value.
func formatValue(v reflect.Value) string {
	k, _ := kindOf(v.Type())
	switch k {
	case kindBool:
		return strconv.FormatBool(v.Bool())
	case kindInt:
		return strconv.FormatInt(v.Int(), 10)
	case kindFloat:
		return formatFloat(v.Float())
	case kindList:
		if v.Len() == 0 {
			return "[]"
		}
		parts := make([]string, v.Len())
		for i := range parts {
			parts[i] = jsonQuote(v.Index(i).String())
		}
		return "[" + strings.Join(parts, ", ") + "]"
	}
	return v.String()
}

// formatFloat writes 1e-05 as 1.0e-05: YAML readers that follow version 1.1
// take the form without a point for a string.
func formatFloat(f float64) string {
	s := strconv.FormatFloat(f, 'g', -1, 64)
	if i := strings.IndexByte(s, 'e'); i >= 0 && !strings.Contains(s, ".") {
		s = s[:i] + ".0" + s[i:]
	}
	return s
}

func jsonQuote(s string) string {
	b, err := json.Marshal(s)
	if err != nil {
		panic("cli: a string has no JSON form") // json.Marshal takes any string
	}
	return string(b)
}
