// Bodyless functions (go:linkname) need an assembly file beside them.
