package torchfile

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"unicode/utf8"
)

// What a pickle can build here, beside nil, bool, int, float64 and string.
type (
	tuple []any
	list  struct{ items []any }
	// dict keeps the order of its items; Python's dict and OrderedDict.
	dict struct {
		keys   []any
		values []any
		named  map[string]int // place of the string keys
	}
	// function is a name that a pickle may call or refer to.
	function string
)

// The names that a state dict needs. Storage classes are those of dtypes.
const (
	orderedDict      function = "collections.OrderedDict"
	rebuildTensor    function = "torch._utils._rebuild_tensor_v2"
	rebuildParameter function = "torch._utils._rebuild_parameter"
)

// Limits of a pickle. One of ten thousand tensors has some 2 MB.
const (
	maxPickle = 16 << 20
	maxStack  = 1 << 20
)

var errShort = errors.New("its description ends in the middle: the file is cut short or damaged")

func (d *dict) set(key, value any) error {
	if name, ok := key.(string); ok {
		if _, twice := d.named[name]; twice {
			return fmt.Errorf("two entries are called %.80q", name)
		}
		if d.named == nil {
			d.named = map[string]int{}
		}
		d.named[name] = len(d.keys)
	}
	d.keys, d.values = append(d.keys, key), append(d.values, value)
	return nil
}

// machine runs one pickle.
type machine struct {
	src   []byte
	at    int
	stack []any
	marks []int
	memo  map[uint32]any
	// storages are those named so far, by key: views of one share it.
	storages map[string]*storage
}

// unpickle returns the value that a pickle describes.
func unpickle(src []byte) (any, error) {
	m := &machine{src: src, memo: map[uint32]any{}, storages: map[string]*storage{}}
	for {
		op, err := m.take(1)
		if err != nil {
			return nil, err
		}
		if op[0] == '.' { // STOP
			return m.pop()
		}
		if err := m.step(op[0]); err != nil {
			return nil, err
		}
		if len(m.stack)+len(m.marks) > maxStack {
			return nil, fmt.Errorf("its description nests more than %d values", maxStack)
		}
	}
}

func (m *machine) take(n int) ([]byte, error) {
	if n < 0 || n > len(m.src)-m.at {
		return nil, errShort
	}
	b := m.src[m.at : m.at+n]
	m.at += n
	return b, nil
}

func (m *machine) push(v any) error {
	m.stack = append(m.stack, v)
	return nil
}

// bottom is the place below which the present mark ends the stack.
func (m *machine) bottom() int {
	if len(m.marks) == 0 {
		return 0
	}
	return m.marks[len(m.marks)-1]
}

func (m *machine) pop() (any, error) {
	if len(m.stack) <= m.bottom() {
		return nil, errors.New("its description is damaged: a value is missing")
	}
	v := m.stack[len(m.stack)-1]
	m.stack = m.stack[:len(m.stack)-1]
	return v, nil
}

// popMark returns what was pushed since the last mark.
func (m *machine) popMark() ([]any, error) {
	if len(m.marks) == 0 {
		return nil, errors.New("its description is damaged: a mark is missing")
	}
	from := m.bottom()
	m.marks = m.marks[:len(m.marks)-1]
	items := append([]any(nil), m.stack[from:]...)
	m.stack = m.stack[:from]
	return items, nil
}

// top is the value that items are added to.
func (m *machine) top() (any, error) {
	v, err := m.pop()
	if err == nil {
		m.stack = append(m.stack, v)
	}
	return v, err
}

// step runs one operation (Python's pickletools lists them).
func (m *machine) step(op byte) error {
	switch op {
	case 0x80: // PROTO
		v, err := m.take(1)
		if err == nil && v[0] != 2 {
			err = fmt.Errorf("it is a pickle of protocol %d; torch.save writes 2 unless told otherwise, and only that is read", v[0])
		}
		return err
	case '(': // MARK
		m.marks = append(m.marks, len(m.stack))
		return nil
	case '}': // EMPTY_DICT
		return m.push(&dict{})
	case ']': // EMPTY_LIST
		return m.push(&list{})
	case ')': // EMPTY_TUPLE
		return m.push(tuple{})
	case 'N': // NONE
		return m.push(nil)
	case 0x88, 0x89: // NEWTRUE, NEWFALSE
		return m.push(op == 0x88)
	case 'K', 'M', 'J', 0x8a, 'G', 'X': // BININT1, BININT2, BININT, LONG1, BINFLOAT, BINUNICODE
		return m.scalar(op)
	case 't', 0x85, 0x86, 0x87: // TUPLE, TUPLE1 to 3
		return m.tuple(op)
	case 'q', 'r', 'h', 'j': // BINPUT, LONG_BINPUT, BINGET, LONG_BINGET
		return m.remember(op)
	case 's', 'u', 'a', 'e': // SETITEM, SETITEMS, APPEND, APPENDS
		return m.add(op)
	case 'c': // GLOBAL
		return m.global()
	case 'Q': // BINPERSID
		return m.persistent()
	case 'R': // REDUCE
		return m.call()
	case 'b': // BUILD
		return m.build()
	}
	return fmt.Errorf("it is no state dict: its description has the operation 0x%02x, which no dict of tensors needs", op)
}

func (m *machine) scalar(op byte) error {
	width := map[byte]int{'K': 1, 'M': 2, 'J': 4, 0x8a: 1, 'G': 8, 'X': 4}[op]
	b, err := m.take(width)
	if err != nil {
		return err
	}
	switch op {
	case 'K':
		return m.push(int(b[0]))
	case 'M':
		return m.push(int(binary.LittleEndian.Uint16(b)))
	case 'J':
		return m.push(int(int32(binary.LittleEndian.Uint32(b))))
	case 'G':
		return m.push(math.Float64frombits(binary.BigEndian.Uint64(b)))
	case 0x8a:
		if b, err = m.take(int(b[0])); err != nil {
			return err
		}
		if len(b) > 8 {
			return fmt.Errorf("its description has a number of %d bytes", len(b))
		}
		var v uint64
		for i, c := range b {
			v |= uint64(c) << (8 * i)
		}
		if n := len(b); n > 0 && n < 8 && b[n-1]&0x80 != 0 { // two's complement
			v |= ^uint64(0) << (8 * n)
		}
		return m.push(int(int64(v)))
	}
	n := binary.LittleEndian.Uint32(b)
	if uint64(n) > uint64(len(m.src)) {
		return errShort
	}
	if b, err = m.take(int(n)); err != nil {
		return err
	}
	if !utf8.Valid(b) {
		return fmt.Errorf("its description has a text that is no UTF-8: %.40q", b)
	}
	return m.push(string(b))
}

func (m *machine) tuple(op byte) error {
	if op == 't' {
		items, err := m.popMark()
		if err != nil {
			return err
		}
		return m.push(tuple(items))
	}
	t := make(tuple, op-0x84)
	for i := len(t) - 1; i >= 0; i-- {
		v, err := m.pop()
		if err != nil {
			return err
		}
		t[i] = v
	}
	return m.push(t)
}

func (m *machine) remember(op byte) error {
	width := 1
	if op == 'r' || op == 'j' {
		width = 4
	}
	b, err := m.take(width)
	if err != nil {
		return err
	}
	var k [4]byte
	copy(k[:], b)
	key := binary.LittleEndian.Uint32(k[:])
	if op == 'h' || op == 'j' {
		v, ok := m.memo[key]
		if !ok {
			return errors.New("its description is damaged: it refers to a value that is not there")
		}
		return m.push(v)
	}
	v, err := m.top()
	if err != nil {
		return err
	}
	m.memo[key] = v
	return nil
}

// add puts one or many items into a dict or list.
func (m *machine) add(op byte) (err error) {
	var items []any
	switch op {
	case 'u', 'e':
		items, err = m.popMark()
	case 's':
		items = make([]any, 2)
		if items[1], err = m.pop(); err == nil {
			items[0], err = m.pop()
		}
	case 'a':
		items = make([]any, 1)
		items[0], err = m.pop()
	}
	if err != nil {
		return err
	}
	to, err := m.top()
	if err != nil {
		return err
	}
	switch to := to.(type) {
	case *list:
		if op == 'a' || op == 'e' {
			to.items = append(to.items, items...)
			return nil
		}
	case *dict:
		if (op == 's' || op == 'u') && len(items)%2 == 0 {
			for i := 0; i < len(items); i += 2 {
				if err := to.set(items[i], items[i+1]); err != nil {
					return err
				}
			}
			return nil
		}
	}
	return errors.New("its description is damaged: it adds items to what holds none")
}

// line reads up to a newline.
func (m *machine) line() (string, error) {
	n := bytes.IndexByte(m.src[m.at:], '\n')
	if n < 0 {
		return "", errShort
	}
	b, err := m.take(n + 1)
	return string(b[:max(0, len(b)-1)]), err
}

// global resolves a name, of which there are few. All others are refused
// before anything could be done with them.
func (m *machine) global() error {
	module, err := m.line()
	if err != nil {
		return err
	}
	name, err := m.line()
	if err != nil {
		return err
	}
	full := function(module + "." + name)
	switch full {
	case orderedDict, rebuildTensor, rebuildParameter:
		return m.push(full)
	}
	if kind, ok := dtypes[name]; ok && module == "torch" {
		return m.push(kind)
	}
	return fmt.Errorf("it asks for %.120q, and only tensors are built here: it is no plain state dict; where it comes from PyTorch and you trust it, save the weights alone there: torch.save(model.state_dict(), FILE)", string(full))
}

// persistent makes a storage of ("storage", class, key, device, elements).
func (m *machine) persistent() error {
	v, err := m.pop()
	if err != nil {
		return err
	}
	t, _ := v.(tuple)
	if len(t) != 5 || t[0] != "storage" {
		return errors.New("its description is damaged: a storage has another form than torch.save gives it")
	}
	kind, ok1 := t[1].(dtype)
	key, ok2 := t[2].(string)
	n, ok3 := t[4].(int)
	if !ok1 || !ok2 || !ok3 || n < 0 || n > math.MaxInt64/16 {
		return errors.New("its description is damaged: a storage has another form than torch.save gives it")
	}
	s := m.storages[key]
	if s == nil {
		s = &storage{key: key, kind: kind, n: n}
		m.storages[key] = s
	}
	if s.kind != kind || s.n != n {
		return fmt.Errorf("storage %.40q is described twice, as %d of %s and %d of %s", key, s.n, s.kind.name, n, kind.name)
	}
	return m.push(s)
}

// call runs one of the functions.
func (m *machine) call() error {
	v, err := m.pop()
	if err != nil {
		return err
	}
	args, ok := v.(tuple)
	f, err := m.pop()
	if err != nil {
		return err
	}
	fn, isFunction := f.(function)
	if !ok || !isFunction {
		return errors.New("its description is damaged: it calls what is no function")
	}
	switch fn {
	case orderedDict:
		if len(args) == 0 {
			return m.push(&dict{})
		}
	case rebuildParameter: // data, requires_grad, hooks
		if len(args) >= 1 {
			if t, ok := args[0].(Tensor); ok {
				return m.push(t)
			}
		}
	case rebuildTensor: // storage, offset, shape, strides, requires_grad, hooks
		if len(args) >= 4 {
			s, ok1 := args[0].(*storage)
			offset, ok2 := args[1].(int)
			shape, ok3 := ints(args[2])
			stride, ok4 := ints(args[3])
			if ok1 && ok2 && ok3 && ok4 {
				t, err := newTensor(s, offset, shape, stride)
				if err != nil {
					return err
				}
				return m.push(t)
			}
		}
	}
	return fmt.Errorf("its description calls %s with other arguments than torch.save gives it", fn)
}

// maxDims bounds what one tensor's description may take.
const maxDims = 32

func ints(v any) ([]int, bool) {
	t, ok := v.(tuple)
	if !ok || len(t) > maxDims {
		return nil, false
	}
	out := make([]int, len(t))
	for i, x := range t {
		n, is := x.(int)
		out[i], ok = n, ok && is
	}
	return out, ok
}

// build takes attributes of a dict, which a state dict has for the versions of
// its modules, and drops them.
func (m *machine) build() error {
	if _, err := m.pop(); err != nil {
		return err
	}
	to, err := m.top()
	if err != nil {
		return err
	}
	if _, ok := to.(*dict); !ok {
		return errors.New("it is no state dict: its description sets attributes of what has none")
	}
	return nil
}
