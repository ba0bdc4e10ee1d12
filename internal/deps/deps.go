// Package deps keeps the module's dependencies listed until each is used.
package deps

import (
	_ "codeberg.org/sbinet/npyio"
	_ "github.com/goccy/go-yaml"
	_ "github.com/klauspost/compress/zstd"
	_ "github.com/schollz/progressbar/v3"
	_ "github.com/spf13/cobra"
	_ "github.com/stretchr/testify/require"
	_ "go4.org/unsafe/assume-no-moving-gc"
	_ "golang.org/x/image/font"
	_ "golang.org/x/sys/cpu"
	_ "golang.org/x/term"
	_ "gonum.org/v1/plot"
	_ "gorgonia.org/gorgonia"
	_ "gorgonia.org/tensor"
)
