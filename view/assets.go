package view

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"fmt"
	"io/fs"
	"net/http"
	"path"
	"strings"
	"time"
)

//go:embed assets
var assetFiles embed.FS

// contentTypes of what is embedded; nothing else is sent.
var contentTypes = map[string]string{
	".html": "text/html; charset=utf-8",
	".css":  "text/css; charset=utf-8",
	".js":   "text/javascript; charset=utf-8",
	".svg":  "image/svg+xml",
}

// asset reads an embedded file.
func asset(name string) ([]byte, error) { return assetFiles.ReadFile("assets/" + name) }

// serveAsset sends an embedded file; / is the page.
func serveAsset(w http.ResponseWriter, r *http.Request) {
	name := strings.TrimPrefix(r.URL.Path, "/")
	if name == "" {
		name = "index.html"
	}
	kind, ok := contentTypes[path.Ext(name)]
	raw, err := asset(name)
	if !ok || err != nil || !fs.ValidPath(name) {
		http.Error(w, "there is no such page", http.StatusNotFound)
		return
	}
	h := w.Header()
	h.Set("Content-Type", kind)
	h.Set("Cache-Control", "no-cache") // ask, so that a new program is seen at once
	h.Set("ETag", fmt.Sprintf(`"%x"`, sha256.Sum256(raw)))
	http.ServeContent(w, r, name, time.Time{}, bytes.NewReader(raw))
}
