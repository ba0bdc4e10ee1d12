package corpus

import (
	"deeploop/internal/staging"
	"deeploop/internal/wording"
)

// checkTarget reports whether out may be written: it does not exist, is an
// empty folder, or, with force, is a dataset of ours and nothing else.
func checkTarget(out string, force bool) error {
	entries, err := staging.Occupied(out)
	if err != nil {
		return inputErrorf("write dataset: %w; choose another --out", err)
	}
	if len(entries) == 0 {
		return nil
	}
	m, err := ReadManifest(out)
	if err != nil {
		return inputErrorf("write dataset: folder %s exists and is not a dataset of lm prepare, so it is never overwritten; choose another --out", out)
	}
	if !force {
		return inputErrorf("write dataset: %s exists already (dataset %.12s, tokenizer %s); use --force to replace it, or another --out", out, m.DatasetHash, m.Tokenizer)
	}
	ours := map[string]bool{ManifestName: true}
	for _, f := range m.Files {
		ours[f.Name] = true
	}
	var extra []string
	for _, e := range entries {
		if !ours[e.Name()] || !e.Type().IsRegular() {
			extra = append(extra, e.Name())
		}
	}
	if len(extra) > 0 {
		return inputErrorf("write dataset: %s also holds files that lm prepare did not write (%s), so it is not overwritten; move them or choose another --out",
			out, wording.List(extra, 3))
	}
	return nil
}
