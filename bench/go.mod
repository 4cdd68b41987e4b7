module github.com/fastlabel/fastlabel/bench

go 1.26.0

replace github.com/fastlabel/fastlabel => ..

require (
	github.com/hanwen/go-fuse/v2 v2.12.1
	github.com/opencontainers/selinux v1.15.1
	golang.org/x/sys v0.49.0
)

require (
	github.com/cyphar/filepath-securejoin v0.5.1 // indirect
	github.com/fastlabel/fastlabel v0.0.0
)
