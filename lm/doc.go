// Package lm is the place of the looped language model. What it shares with
// hrm (residual rule, looped blocks, compute layer) is in deeploop and
// internal.
package lm
