// Package hrm is the Hierarchical Reasoning Model (arXiv 2506.21734) for
// ARC-AGI: configuration and presets, model, carry and halting, training and
// evaluation, with or without DeepLoop residual scaling. Numbers equal those
// of the reference implementation (sapientinc/HRM) unless a comment says so.
package hrm
